//! The clients that people have: the published TypeScript client in four versions, the hooks package, the Python
//! client, and the bodies that MetaMask and ShapeShift send; unmodified, pinned, over real chains.

pub mod hooks;
pub mod python;
pub mod rig;
pub mod typescript;
pub mod wallets;

use self::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn published_clients_quote_execute_and_are_refunded() {
    let rig = Rig::start().await;
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|number| rig.app.customer(number));
    let (_, _, _, request, (), (), ()) = tokio::join!(
        typescript::lives(&rig, "sdk-2", a),
        typescript::lives(&rig, "sdk-4", b),
        typescript::lives(&rig, "sdk-6", c),
        typescript::lives(&rig, "sdk-7", d),
        python::lives(&rig, e),
        wallets::metamask(&rig.app, f),
        wallets::shapeshift(&rig.app, &rig.app.world.user),
    );
    let who = d.clone();
    hooks::read_what_they_declare(rig, &who, &request).await;
}
