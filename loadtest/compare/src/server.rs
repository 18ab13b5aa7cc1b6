//! Serves a router on the address of the first argument, on the calling thread.

use axum::Router;
use tokio::net::TcpListener;

pub fn serve(router: Router) -> std::io::Result<()> {
    let address = std::env::args().nth(1).expect("the first argument is an address, such as 127.0.0.1:9001");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("ready");
        axum::serve(listener, router).await
    })
}
