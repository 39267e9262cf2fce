//! Jobs whose ranks are threads of one process, with one fabric for each rank.

use std::sync::Arc;

use fencepost_transport::auth::{Secret, random_bytes};
use fencepost_transport::{Settings, TcpEnd, TcpFabric, listen};

/// Creates the fabrics of a job. Each fabric has the addresses of all ranks.
pub fn fabrics(ranks: usize, settings: Settings) -> Vec<TcpFabric> {
    let (secret, job) = (Secret::new().unwrap(), random_bytes().unwrap());
    let fabric = |rank| TcpFabric::new(listen(None).unwrap(), secret.clone(), job, rank, settings).unwrap();
    let mut fabrics: Vec<TcpFabric> = (0..ranks).map(fabric).collect();
    let addresses: Vec<_> = fabrics.iter().map(|fabric| fabric.address().unwrap()).collect();
    fabrics.iter_mut().for_each(|fabric| fabric.table(&addresses).unwrap());
    fabrics
}

/// Creates a job with one world. Returns the fabric and the end of each rank.
#[allow(dead_code, reason = "not every test program makes worlds")]
pub fn job(ranks: usize, settings: Settings) -> Vec<(Arc<TcpFabric>, TcpEnd)> {
    let end = |(rank, fabric)| {
        let fabric = Arc::new(fabric);
        let end = TcpEnd::of_job(&fabric, 0, rank, ranks).unwrap();
        (fabric, end)
    };
    fabrics(ranks, settings).into_iter().enumerate().map(end).collect()
}
