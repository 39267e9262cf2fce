//! Positions of tokens in the source, and the source text of tokens.

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// Returns the start of a span as a value that can be compared.
pub fn place_of(span: Span) -> (usize, usize) {
    (span.start().line, span.start().column)
}

/// Returns the text of tokens in the source, on one line and shortened to 70 characters.
pub fn text_of(tokens: &impl ToTokens) -> String {
    let mut line = String::new();
    write_tokens(tokens.to_token_stream(), &mut line, &mut None);
    const LONG: usize = 70;
    if line.chars().count() > LONG {
        line = line.chars().take(LONG - 3).collect::<String>() + "...";
    }
    line
}

/// Writes tokens, with one space wherever the source has spaces between them. `end` is the place
/// where the last token ended.
fn write_tokens(tokens: TokenStream, line: &mut String, end: &mut Option<LineColumn>) {
    fn write(text: &str, from: LineColumn, to: LineColumn, line: &mut String, end: &mut Option<LineColumn>) {
        if end.is_some_and(|end| end != from) {
            line.push(' ');
        }
        line.push_str(text);
        *end = Some(to);
    }
    for token in tokens {
        let (from, to) = (token.span().start(), token.span().end());
        let TokenTree::Group(group) = token else {
            write(&token.to_string(), from, to, line, end);
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => {
                write_tokens(group.stream(), line, end);
                continue;
            }
        };
        // A group that was parsed and printed has one span for both of its delimiters: the span of
        // the whole group.
        write(open, from, LineColumn { column: from.column + 1, ..from }, line, end);
        write_tokens(group.stream(), line, end);
        write(close, LineColumn { column: to.column.saturating_sub(1), ..to }, to, line, end);
    }
}
