//! Scripts of observations: correct ones cause no violation, and each broken promise causes one.

mod script;

mod control;
mod damage;
mod delivery;
mod limits;
mod loss;
mod quiescence;
mod retention;
mod sse;
mod views;
mod webhooks;

use self::script::Script;
