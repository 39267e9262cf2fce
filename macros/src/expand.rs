use proc_macro2::TokenStream;
pub fn expand(_: &crate::parse::Superstep, _: &crate::collect::Body, _: &crate::slice::Outcome) -> TokenStream { TokenStream::new() }
pub fn harmless(_: TokenStream, _: &syn::Error) -> TokenStream { TokenStream::new() }
