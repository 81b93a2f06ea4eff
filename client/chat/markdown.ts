/**
 * Parses the Markdown of a message into a tree of elements. Pure: the page renders the tree, and
 * tests inspect it.
 *
 * Invariants:
 * M1. The tree contains only the tags of `Tag` and the attributes set here. Input becomes text or
 *     the value of such an attribute. Raw HTML, comments and link definitions are shown as source
 *     text, so that users see what models read.
 * M2. A link leads to `http:`, `https:` or `mailto:`. Rendering loads no resources: images become
 *     links.
 * M3. The work is bounded for every input. Text beyond a bound is shown as plain text.
 */
import {
  Lexer,
  type MarkedToken,
  type Token,
  Tokenizer,
  type Tokens,
  type TokensList,
} from 'marked'
import type { MarkdownElement, MarkdownNode, Tag } from './markdown-tree.ts'

/** Limits for the Markdown of one block. */
export const limits = {
  /** Maximum number of characters that are parsed as Markdown. */
  characters: 100_000,
  /**
   * Maximum nesting depth of elements. A list, a table or a code block at this depth still contains
   * the elements of which it consists, such as items and rows.
   */
  depth: 20,
  /** Maximum number of elements and text nodes of a tree. */
  nodes: 10_000,
  /** Maximum work of the lexer in characters, as `BoundedLexer` estimates it. */
  work: 20_000_000,
} as const

/**
 * Cost model: a nested block costs 1/8 of the length of the whole input, because the lexer splits
 * and joins the remaining lines again for each block.
 */
const BLOCK_SHARE = 8

/**
 * Cost model: each line of the input costs 1/32 of the length of the input, because the list rule
 * examines the lines one by one.
 */
const TEXT_LINE_SHARE = 32

/**
 * Cost model: each line of a nested block costs 1/8 of the length of the block, because the lexer
 * joins the lines one by one.
 */
const LINE_SHARE = 8

/**
 * Cost model: a run of white space costs 1/16 of its squared length, because some rules are tried
 * at each of its positions.
 */
const SPACE_SHARE = 16

const element = (
  tag: Tag,
  children: readonly MarkdownNode[] = [],
  attributes: Readonly<Record<string, string>> = {},
): MarkdownElement => ({ tag, attributes, children })

const plain = (text: string): MarkdownElement => element('p', [text], { class: 'plain' })

class LimitExceeded extends Error {}

/**
 * Characters at which inline rules of the lexer scan ahead, in some cases to the end of the input.
 */
const marks = /[*_~[\]!`<\\(&:@]/g

/**
 * A lexer with bounded work. The cost of inline rules is proportional to the length of the input
 * times its number of marks, so input with too many marks is treated as plain text. The cost of the
 * rules for quotes and lists is proportional to the length times the number of nested blocks.
 */
class BoundedLexer extends Lexer {
  readonly #size: number
  #depth = 0
  #work = 0

  /** @param source the Markdown that will be parsed. */
  constructor(source: string) {
    super({ gfm: true, breaks: true, tokenizer: new Tokenizer() })
    this.#size = source.length
    this.#work += (source.length * linesOf(source)) / TEXT_LINE_SHARE
    for (const [run] of source.matchAll(/\s{2,}/g)) this.#work += run.length ** 2 / SPACE_SHARE
  }
  /** Estimated work so far, in characters. */
  get work(): number {
    return this.#work
  }
  /** @throws LimitExceeded when the estimated work exceeds the limit. */
  override blockTokens(source: string, tokens?: Token[], clipped?: boolean): Token[]
  override blockTokens(source: string, tokens?: TokensList, clipped?: boolean): TokensList
  override blockTokens(source: string, tokens: Token[] = [], clipped = false): Token[] {
    this.#work += source.length
    if (this.#depth > 0)
      this.#work += this.#size / BLOCK_SHARE + (source.length * linesOf(source)) / LINE_SHARE
    if (this.#work > limits.work) throw new LimitExceeded()
    return this.#nested(source, tokens, () => super.blockTokens(source, tokens, clipped))
  }
  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    const cost = source.length * (1 + (source.match(marks)?.length ?? 0))
    if (this.#work + cost > limits.work) return asText(source, tokens)
    this.#work += cost
    return this.#nested(source, tokens, () => super.inlineTokens(source, tokens))
  }
  #nested(source: string, tokens: Token[], lex: () => Token[]): Token[] {
    if (this.#depth === limits.depth) return asText(source, tokens)
    this.#depth++
    try {
      return lex()
    } finally {
      this.#depth--
    }
  }
}

const linesOf = (text: string): number => text.match(/\n/g)?.length ?? 0

function asText(source: string, tokens: Token[]): Token[] {
  // `escaped`: character references in the text are not resolved.
  if (source !== '') tokens.push({ type: 'text', raw: source, text: source, escaped: true })
  return tokens
}

/** Parses Markdown into a tree, with one element for each top-level block. */
export function markdownTree(source: string): readonly MarkdownElement[] {
  return parseMarkdown(source).tree
}

/** Returns the text of Markdown without its markup, for screen readers. */
export const markdownText = (source: string): string =>
  markdownTree(source).map(wordsOf).join(' ').replaceAll(/\s+/g, ' ').trim()

const inlineTags: ReadonlySet<string> = new Set(['a', 'code', 'del', 'em', 'strong'])

function wordsOf(node: MarkdownNode): string {
  if (!isElement(node)) return node
  const text = node.children.map(wordsOf).join('')
  return inlineTags.has(node.tag) ? text : ` ${text} `
}

/**
 * Parses Markdown like `markdownTree`.
 * @returns the tree, and, for tests of the limit, the lexer's estimated work in characters.
 */
export function parseMarkdown(source: string): {
  readonly tree: readonly MarkdownElement[]
  readonly work: number
} {
  const cut =
    source.length <= limits.characters
      ? source.length
      : source.lastIndexOf('\n', limits.characters - 1) + 1 || limits.characters
  const head = source.slice(0, cut)
  const rest = source.slice(cut)
  const lexer = new BoundedLexer(head)
  let tokens: readonly Token[]
  try {
    tokens = lexer.lex(head)
  } catch {
    // The limit was exceeded or the lexer failed, so the source is shown as plain text.
    return { tree: [plain(source)], work: lexer.work }
  }
  const builder = new TreeBuilder()
  const tree: MarkdownElement[] = []
  for (const [index, token] of tokens.entries()) {
    try {
      tree.push(...builder.blocks([token], 1).map((node) => (isElement(node) ? node : plain(node))))
    } catch (error) {
      if (!(error instanceof LimitExceeded)) throw error
      const left = tokens.slice(index).map(({ raw }) => raw)
      return { tree: [...tree, plain(left.join('') + rest)], work: lexer.work }
    }
  }
  if (rest !== '') tree.push(plain(rest))
  return { tree, work: lexer.work }
}

const isElement = (node: MarkdownNode): node is MarkdownElement => typeof node !== 'string'

const headings = ['h3', 'h4', 'h5', 'h6'] as const

class TreeBuilder {
  #nodes = 0

  /**
   * Counts a node.
   * @param own number of text nodes inside it that are not counted separately.
   */
  #made<N extends MarkdownNode>(node: N, own = 0): N {
    this.#nodes += 1 + own
    if (this.#nodes > limits.nodes) throw new LimitExceeded()
    return node
  }
  /** @throws LimitExceeded if there are too many nodes. */
  blocks(tokens: readonly Token[], depth: number, loose = true): MarkdownNode[] {
    return tokens.flatMap((token) =>
      depth > limits.depth
        ? [this.#made(token.raw)]
        : this.#block(token as MarkedToken, depth, loose).map((node) => this.#made(node)),
    )
  }
  #block(token: MarkedToken, depth: number, loose: boolean): MarkdownNode[] {
    switch (token.type) {
      case 'space':
        return []
      case 'heading':
        return [element(headings[token.depth - 1] ?? 'h6', this.#inlines(token.tokens, depth + 1))]
      case 'code': {
        const attributes = token.lang ? { 'data-language': token.lang } : {}
        const code = this.#made(element('code', [token.text]), 1)
        return [element('pre', [code], { tabindex: '0', ...attributes })]
      }
      case 'blockquote':
        return [element('blockquote', this.blocks(token.tokens, depth + 1))]
      case 'list':
        return [
          element(
            token.ordered ? 'ol' : 'ul',
            token.items.map((item) => this.#item(item, depth + 1)),
            typeof token.start === 'number' && token.start !== 1
              ? { start: String(token.start) }
              : {},
          ),
        ]
      case 'hr':
        return [element('hr')]
      case 'table':
        return [this.#table(token, depth)]
      case 'paragraph':
        return [element('p', this.#inlines(token.tokens, depth + 1))]
      case 'text': {
        const children = token.tokens
          ? this.#inlines(token.tokens, depth + 1)
          : this.#inlines([token], depth + 1)
        return loose ? [element('p', children)] : children
      }
      case 'checkbox':
        return this.#inlines([token], depth)
      default:
        this.#made(token.raw)
        return [plain(token.raw.trimEnd())]
    }
  }
  #item({ tokens, loose }: Tokens.ListItem, depth: number): MarkdownElement {
    return this.#made(element('li', this.blocks(tokens, depth + 1, loose)))
  }
  #table({ header, rows, align }: Tokens.Table, depth: number): MarkdownElement {
    const row = (tag: 'th' | 'td', cells: readonly Tokens.TableCell[]): MarkdownElement =>
      this.#made(
        element(
          'tr',
          cells.map(({ tokens }, column) => {
            const side = align[column]
            return this.#made(
              element(tag, this.#inlines(tokens, depth + 5), side ? { class: side } : {}),
            )
          }),
        ),
      )
    const head = this.#made(element('thead', [row('th', header)]))
    const body = element(
      'tbody',
      rows.map((cells) => row('td', cells)),
    )
    const table = this.#made(element('table', [head, this.#made(body)]))
    return element('div', [table], { class: 'table', tabindex: '0' })
  }
  #inlines(tokens: readonly Token[], depth: number, inLink = false): MarkdownNode[] {
    return tokens.map((token) =>
      this.#made(
        depth > limits.depth ? token.raw : this.#inline(token as MarkedToken, depth, inLink),
      ),
    )
  }
  #inline(token: MarkedToken, depth: number, inLink: boolean): MarkdownNode {
    switch (token.type) {
      case 'strong':
      case 'em':
      case 'del':
        return element(token.type, this.#inlines(token.tokens, depth + 1, inLink))
      case 'codespan':
        return element('code', [this.#made(token.text)])
      case 'br':
        return element('br')
      case 'checkbox':
        return token.checked ? '☑ ' : '☐ '
      case 'escape':
        return token.text
      case 'text':
        return token.escaped === true ? token.text : resolveReferences(token.text)
      case 'link': {
        const href = linkTarget(
          token.autolink === true ? token.href : resolveReferences(token.href),
        )
        if (href === undefined || inLink) return token.raw
        return link(href, token.title, this.#inlines(token.tokens, depth + 1, true))
      }
      case 'image': {
        const href = linkTarget(resolveReferences(token.href))
        const alt = resolveReferences(token.text)
        if (href === undefined || inLink) return inLink && alt !== '' ? alt : token.raw
        return link(href, token.title, [this.#made(alt === '' ? href : alt)])
      }
      default:
        return token.raw
    }
  }
}

const link = (
  href: string,
  title: string | null | undefined,
  children: readonly MarkdownNode[],
): MarkdownElement =>
  element('a', children, {
    href,
    target: '_blank',
    rel: 'noopener noreferrer',
    ...(title && { title: resolveReferences(title) }),
  })

const linkSchemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:'])

/**
 * Returns the URL of a link as the browser will use it; undefined if a message may not contain the
 * link. Only URLs with one of the schemes in `linkSchemes` are allowed. Relative URLs are refused,
 * and so are URLs with a user name or password, because they can imitate another host.
 */
export function linkTarget(written: string): string | undefined {
  if (!URL.canParse(written)) return undefined
  const { protocol, username, password, href } = new URL(written)
  return linkSchemes.has(protocol) && username === '' && password === '' ? href : undefined
}

const references: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  bull: '•',
  copy: '©',
  deg: '°',
  euro: '€',
  gt: '>',
  hellip: '…',
  larr: '←',
  ldquo: '“',
  lsquo: '‘',
  lt: '<',
  mdash: '—',
  middot: '·',
  nbsp: '\u00a0',
  ndash: '–',
  quot: '"',
  rarr: '→',
  rdquo: '”',
  reg: '®',
  rsquo: '’',
  times: '×',
  trade: '™',
}

/** Resolves numeric character references and common named ones. Others remain unchanged. */
const resolveReferences = (text: string): string =>
  text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-z]{2,6}));/g,
    (written, decimal?: string, hex?: string, name?: string) =>
      name !== undefined
        ? Object.hasOwn(references, name)
          ? (references[name] ?? written)
          : written
        : characterOf(decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)),
  )

const characterOf = (code: number): string =>
  code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)
    ? '\ufffd'
    : String.fromCodePoint(code)
