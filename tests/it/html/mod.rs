//! Pages of HTML: the text that is found in them, and the verdicts on this text.

mod boost;
mod golden;
mod javadoc;
mod pairs;
mod quality;
mod served;
mod sites;
mod words;
