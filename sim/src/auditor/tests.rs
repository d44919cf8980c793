//! Hand-written stories: healthy ones raise no alarm, and each broken promise raises one.

mod story;

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

use self::story::Story;
