//! Requests as futures.

use fencepost::{ErrorClass, Result, World};
use fencepost_tests_worlds::messages::{everywhere, status};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Asks the other rank a question, and answers the question of the other rank. Neither rank waits
/// for the other.
async fn ask_and_answer(world: &World, round: u64) -> Result<()> {
    let other = 1 - world.rank();
    let ask = async {
        world.message(other, 0).synchronous().isend(vec![round; 1000])?.await?;
        let (answer, found) = world.irecv::<u64>(other, 1)?.await?;
        assert_eq!((answer, found), (vec![round + 1], status(other, 1, 1)));
        Ok(())
    };
    let answer = async {
        let (question, _) = world.irecv_into(other, 0, vec![0u64; 1000])?.await?;
        world.message(other, 1).isend(vec![question[999] + 1])?.await?;
        Ok(())
    };
    let (mut ask, mut answer) = (pin!(ask), pin!(answer));
    let mut ended: [Option<Result<()>>; 2] = [None, None];
    poll_fn(|context| {
        if ended[0].is_none()
            && let Poll::Ready(end) = ask.as_mut().poll(context)
        {
            ended[0] = Some(end);
        }
        if ended[1].is_none()
            && let Poll::Ready(end) = answer.as_mut().poll(context)
        {
            ended[1] = Some(end);
        }
        if ended.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ended.into_iter().flatten().collect()
}

#[test]
fn a_request_is_a_future_that_an_executor_drives() {
    everywhere(2, |world| {
        (0..10).try_for_each(|round| pollster::block_on(ask_and_answer(world, round)))?;
        world.barrier()
    });
}

#[test]
fn the_error_of_a_future_is_that_of_its_request_with_the_buffer() {
    everywhere(2, |world| {
        if world.rank() == 1 {
            world.message(0, 0).send([1u8; 5])?;
        } else {
            let receive = world.irecv_into(1, 0, vec![7u8; 4])?;
            let (buffer, error) = pollster::block_on(receive).expect_err("it is too long").into_parts();
            assert_eq!((buffer, error.class()), (vec![7; 4], ErrorClass::Truncate));
        }
        world.barrier()
    });
}
