//! Names of elements -> the kinds of element that matter for text: kinds that end a line, that close other elements, or
//! whose text is not shown.

/// A kind of element. Elements that are treated in the same way share one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Html,
    Body,
    Title,
    Meta,
    Link,
    Main,
    Article,
    Nav,
    Aside,
    Header,
    Footer,
    /// `h1`. A well-made page has only one.
    Heading1,
    /// `h2` to `h6`.
    Heading,
    /// `p`.
    Paragraph,
    /// `pre`, `listing` and `xmp`: white space counts.
    Pre,
    /// `ul`, `ol`, `menu` and `dir`.
    List,
    /// `li`.
    Item,
    /// `dl`.
    Definitions,
    /// `dt` and `dd`.
    Definition,
    Table,
    /// `thead`, `tbody` and `tfoot`.
    Rows,
    /// `tr`.
    Row,
    /// `td`, `th` and `caption`.
    Cell,
    /// `option` and `optgroup`.
    Choice,
    /// `a`.
    Anchor,
    /// `br` and `hr`.
    Break,
    /// Other elements that have no content and no end tag, and `head`, whose end tag is often left out.
    Void,
    /// Elements whose content is neither shown nor HTML: `script`, `style`, and others.
    Raw,
    /// Elements with HTML that is not shown. No end tag of another element ends them: `template`, `object`.
    Unseen,
    /// Elements whose text is shown only if a player is missing, so it is not used.
    Player,
    /// `svg`. Its text is not shown.
    Drawing,
    /// `math`.
    Formula,
    /// Elements that are shown, but are never the subject of a page: `button`, `select`, `textarea`.
    Control,
    /// Other elements that begin a line.
    Block,
    /// All other elements, unknown ones included. They do not separate words.
    Inline,
}

/// A condition on an element.
pub(super) type IsTag = fn(Tag) -> bool;

impl Tag {
    /// The number of kinds, for tables that are indexed by kind.
    pub(super) const COUNT: usize = Self::Inline as usize + 1;

    /// Returns the kind of an element with this name, in lower case.
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"html" => Self::Html,
            b"body" => Self::Body,
            b"title" => Self::Title,
            b"meta" => Self::Meta,
            b"link" => Self::Link,
            b"main" => Self::Main,
            b"article" => Self::Article,
            b"nav" => Self::Nav,
            b"aside" => Self::Aside,
            b"header" => Self::Header,
            b"footer" => Self::Footer,
            b"h1" => Self::Heading1,
            b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Self::Heading,
            b"p" => Self::Paragraph,
            b"pre" | b"listing" | b"xmp" | b"plaintext" => Self::Pre,
            b"ul" | b"ol" | b"menu" | b"dir" => Self::List,
            b"li" => Self::Item,
            b"dl" => Self::Definitions,
            b"dt" | b"dd" => Self::Definition,
            b"table" => Self::Table,
            b"thead" | b"tbody" | b"tfoot" => Self::Rows,
            b"tr" => Self::Row,
            b"td" | b"th" | b"caption" => Self::Cell,
            b"option" | b"optgroup" => Self::Choice,
            b"a" => Self::Anchor,
            b"br" | b"hr" => Self::Break,
            b"head" | b"area" | b"base" | b"col" | b"embed" | b"frame" | b"img" | b"input" | b"param" | b"source"
            | b"track" | b"wbr" | b"basefont" | b"bgsound" | b"keygen" => Self::Void,
            b"script" | b"style" | b"noscript" | b"iframe" | b"noembed" => Self::Raw,
            b"template" | b"object" | b"applet" | b"foreignobject" => Self::Unseen,
            b"audio" | b"video" | b"canvas" | b"datalist" => Self::Player,
            b"svg" => Self::Drawing,
            b"math" => Self::Formula,
            b"button" | b"select" | b"textarea" => Self::Control,
            b"div" | b"section" | b"address" | b"blockquote" | b"center" | b"details" | b"dialog" | b"fieldset"
            | b"figcaption" | b"figure" | b"form" | b"hgroup" | b"legend" | b"search" | b"summary" | b"frameset"
            | b"noframes" => Self::Block,
            _ => Self::Inline,
        }
    }

    /// Returns whether an element begins and ends a line, or a cell.
    pub(super) fn is_block(self) -> bool {
        !matches!(
            self,
            Self::Anchor
                | Self::Inline
                | Self::Void
                | Self::Raw
                | Self::Unseen
                | Self::Player
                | Self::Drawing
                | Self::Formula
                | Self::Control
                | Self::Choice
                | Self::Title
                | Self::Meta
                | Self::Link
        )
    }

    /// Returns whether the text of an element is not shown.
    pub(super) fn is_unseen(self) -> bool {
        matches!(self, Self::Unseen | Self::Player | Self::Drawing)
    }

    /// Returns whether an element contains a language other than HTML. In such a language `/>` ends an element, and
    /// blocks of HTML end the foreign element.
    pub(super) fn is_foreign(self) -> bool {
        matches!(self, Self::Drawing | Self::Formula)
    }

    pub(super) fn is_heading(self) -> bool {
        matches!(self, Self::Heading1 | Self::Heading)
    }

    /// Returns whether an element has no content.
    pub(super) fn is_void(self) -> bool {
        matches!(self, Self::Break | Self::Void | Self::Meta | Self::Link)
    }

    /// Returns whether the end tag of `self` closes an open `other`.
    pub(super) fn closes(self, other: Self) -> bool {
        self == other || self.is_heading() && other.is_heading()
    }

    /// Returns which open element a start tag closes, and which element stops the search for it. For example, a new row
    /// closes only a row before it in its own table.
    pub(super) fn implies_end_of(self) -> Option<(Self, IsTag)> {
        let outside_list: IsTag = |tag| matches!(tag, Self::List | Self::Table | Self::Cell);
        let outside_definitions: IsTag = |tag| matches!(tag, Self::Definitions | Self::Table | Self::Cell);
        let outside_table: IsTag = |tag| tag == Self::Table;
        let outside_row: IsTag = |tag| matches!(tag, Self::Row | Self::Table);
        match self {
            Self::Item => Some((Self::Item, outside_list)),
            Self::Definition => Some((Self::Definition, outside_definitions)),
            Self::Rows => Some((Self::Rows, outside_table)),
            Self::Row => Some((Self::Row, outside_table)),
            Self::Cell => Some((Self::Cell, outside_row)),
            Self::Choice => Some((Self::Choice, |tag| tag == Self::Control)),
            Self::Anchor => Some((Self::Anchor, |tag| tag.is_block() || tag.is_foreign())),
            _ => None,
        }
    }

    /// Returns whether an open `other` stops the search for the element that an end tag of `self` closes. For example,
    /// `</div>` in a cell does not close a `div` around the table, and `</b>` closes neither a paragraph nor a drawing.
    pub(super) fn stops_at(self, other: Self) -> bool {
        match self {
            Self::Table | Self::Rows | Self::Row => other == Self::Table && self != Self::Table,
            Self::Cell => other == Self::Table,
            _ if self.is_unseen() || self.is_foreign() => false,
            _ if self.is_block() || matches!(self, Self::Anchor | Self::Control) => {
                matches!(other, Self::Cell | Self::Table) || other.is_foreign() && !self.is_block()
            }
            _ => other.is_block() || other.is_foreign(),
        }
    }
}
