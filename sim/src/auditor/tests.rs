//! Hand-written stories: healthy ones raise no alarm, and each broken promise raises one.

mod story;

mod calling;
mod changing;
mod damage;
mod following;
mod handing;
mod keeping;
mod limiting;
mod losing;
mod resting;
mod watching;

use self::story::Story;
