/** The tree of elements into which the Markdown of a message is parsed. */

export type Tag =
  | 'a'
  | 'blockquote'
  | 'br'
  | 'code'
  | 'del'
  | 'div'
  | 'em'
  | 'h3'
  | 'h4'
  | 'h5'
  | 'h6'
  | 'hr'
  | 'li'
  | 'ol'
  | 'p'
  | 'pre'
  | 'strong'
  | 'table'
  | 'tbody'
  | 'td'
  | 'th'
  | 'thead'
  | 'tr'
  | 'ul'

/** An element with its attributes, or text. */
export type MarkdownNode = string | MarkdownElement

export interface MarkdownElement {
  readonly tag: Tag
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly MarkdownNode[]
}
