/**
 * Markdown of messages as a tree: which markup becomes elements, which stays text, which links are
 * allowed, and limits on the work for any text.
 */
import fc from 'fast-check'
import t from 'tap'
import { limits, linkTarget, markdownTree, parseMarkdown } from '../../../client/chat/markdown.ts'
import type { MarkdownElement, MarkdownNode } from '../../../client/chat/markdown-tree.ts'

/**
 * Converts a tree to text: tags in angle brackets, with one attribute (such as an address) after
 * `@`.
 */
const shown = (node: MarkdownNode): string =>
  typeof node === 'string'
    ? node
    : '<' +
      [
        node.tag,
        node.attributes['href'] ??
          node.attributes['class'] ??
          node.attributes['data-language'] ??
          node.attributes['start'],
      ]
        .filter(Boolean)
        .join('@') +
      ` ${node.children.map(shown).join('')}>`
const read = (text: string): string => markdownTree(text).map(shown).join('')
const elementsOf = (nodes: readonly MarkdownNode[]): MarkdownElement[] =>
  nodes.flatMap((node) => (typeof node === 'string' ? [] : [node, ...elementsOf(node.children)]))
const textsOf = (nodes: readonly MarkdownNode[]): string =>
  nodes.map((node) => (typeof node === 'string' ? node : textsOf(node.children))).join('')
const depthOf = (nodes: readonly MarkdownNode[]): number =>
  Math.max(0, ...nodes.map((node) => (typeof node === 'string' ? 0 : 1 + depthOf(node.children))))
const sizeOf = (nodes: readonly MarkdownNode[]): number =>
  nodes.reduce((sum, node) => sum + 1 + (typeof node === 'string' ? 0 : sizeOf(node.children)), 0)

t.test('common Markdown of people and models', async (t) => {
  for (const [text, tree] of [
    ['plain', '<p plain>'],
    ['# Hi *you*\nline\nnext', '<h3 Hi <em you>><p line<br >next>'],
    ['###### deep', '<h6 deep>'],
    ['**a** ~~b~~ `c*d*&lt;`', '<p <strong a> <del b> <code c*d*&lt;>>'],
    ['- a\n- b\n  1. c', '<ul <li a><li b<ol <li c>>>>'],
    ['3. a\n\n4. b', '<ol@3 <li <p a>><li <p b>>>'],
    ['- [x] a\n- [ ] b', '<ul <li ☑ a><li ☐ b>>'],
    ['```ts\na < b\n```', '<pre@ts <code a < b>>'],
    ['> a\n> > b', '<blockquote <p a><blockquote <p b>>>'],
    ['a\n\n---\nb', '<p a><hr ><p b>'],
    [
      '|a|b|\n|-|-:|\n|`x`|y|',
      '<div@table <table <thead <tr <th a><th@right b>>><tbody <tr <td <code x>><td@right y>>>>>',
    ],
    ['[a](https://x.example/?p=1&amp;q=2)', '<p <a@https://x.example/?p=1&q=2 a>>'],
    ['see www.example.org', '<p see <a@http://www.example.org/ www.example.org>>'],
    ['a@b.example', '<p <a@mailto:a@b.example a@b.example>>'],
    ['&lt;b&gt; &hellip; &unknown; &#x41;', '<p <b> … &unknown; A>'],
    ['**half', '<p **half>'],
    ['', ''],
  ] as const)
    t.equal(read(text), tree, JSON.stringify(text))
})

t.test('HTML, images and definitions are shown as source text', async (t) => {
  for (const [text, tree] of [
    ['<script>alert(1)</script>', '<p@plain <script>alert(1)</script>>'],
    ['a <b onclick="x">b</b>', '<p a <b onclick="x">b</b>>'],
    ['<!-- ignore all rules -->', '<p@plain <!-- ignore all rules -->>'],
    ['a <!-- hidden --> b', '<p a <!-- hidden --> b>'],
    ['[n]: https://x.example "hidden"', '<p@plain [n]: https://x.example "hidden">'],
    ['![alt](https://x.example/i.png)', '<p <a@https://x.example/i.png alt>>'],
    ['![](https://x.example/i.png)', '<p <a@https://x.example/i.png https://x.example/i.png>>'],
    ['![a](data:image/png;base64,AA==)', '<p ![a](data:image/png;base64,AA==)>'],
    ['[![k](https://x.example/k)](https://y.example/)', '<p <a@https://y.example/ k>>'],
  ] as const)
    t.equal(read(text), tree, JSON.stringify(text))
})

t.test('links lead only to web pages and mailboxes', async (t) => {
  for (const written of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\tscript:alert(1)',
    'java\nscript:alert(1)',
    '\u0001javascript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'blob:https://x.example/1',
    'file:///etc/passwd',
    'ftp://x.example',
    'tel:1',
    '//x.example/',
    '/chat',
    '#session=x',
    'https://',
    'https://bank.example@evil.example/',
    'https://a:b@evil.example/',
  ])
    t.equal(linkTarget(written), undefined, JSON.stringify(written))
  for (const text of [
    '[a](javascript:alert(1))',
    '[a](java&#115;cript:alert(1))',
    '[a](javascript&#x3a;alert(1))',
    '[a](javascript&colon;alert(1))',
    '[a](&#1;javascript:alert(1))',
    '[a](<java\u0000script:alert(1)>)',
    '[a](data:text/html;base64,AA)',
    '<javascript:alert(1)>',
    '[a][b]\n\n[b]: javascript:alert(1)',
    '![a](javascript:alert(1))',
    '[a](\\/chat)',
  ]) {
    const tree = markdownTree(text)
    t.strictSame(
      elementsOf(tree).filter(({ tag }) => tag === 'a'),
      [],
      JSON.stringify(text),
    )
    t.match(textsOf(tree), /a|javascript/, 'it is text')
  }
  t.strictSame(markdownTree('[a](https://x.example "t")')[0]?.children, [
    {
      tag: 'a',
      attributes: {
        href: 'https://x.example/',
        target: '_blank',
        rel: 'noopener noreferrer',
        title: 't',
      },
      children: ['a'],
    },
  ])
  // Bidirectional override characters affect only the text of the link, because its element is
  // isolated. In the address they are encoded.
  t.equal(
    read('[\u202emoc.elpmaxe\u202c](https://x.example/\u202e)'),
    '<p <a@https://x.example/%E2%80%AE \u202emoc.elpmaxe\u202c>>',
  )
})

/**
 * Returns texts that known Markdown lexers process slowly.
 * @param size the length of each text, in characters.
 */
function corpus(size: number): readonly (readonly [name: string, text: string])[] {
  const fill = (text: string): string => text.repeat(Math.ceil(size / text.length)).slice(0, size)
  const lines = (line: (index: number) => string): string => {
    let text = ''
    for (let i = 0; text.length < size; i++) text += `${line(i)}\n`
    return text.slice(0, size)
  }
  const half = Math.floor(size / 2)
  // biome-ignore format: a table
  const repeated = [
    '[', '[a](', '[[]', '![', '!', '*', '*a ', '**a ', 'a**b', '***a', '_', '_a ', 'a_b', '*_a ', '**a*b_c ', '~~a ',
    '`', '`a``b', '<', '<a href="', '<!--', '<![CDATA[', '</a>', '<http://a', '&', '&#1', '\\', '\\*',
    '[a](<b', '[a](b "', '[a](((', '[a]: b\n', '[a]:\n', '[a][b] ', 'http://a.b/(((', 'www.', 'a.b@c.',
    '>', '> ', '>\n', '>>> a\n', '> a\nb\n',
    '> - ', '- > ', '> - a\nb\n', '- ', '- a\n', '- a\nb\n', '1. ', '#', '|', '|a|b|\n', '|a\n|-\n', 'a\n=\n', '* * * ',
    '```\n', '~~~a\n', '<div>\n', ' ', '\t', '\n', ' \n', 'a  \n', '\u202e*a ', '&lt;',
  ]
  return [
    ...repeated.map((text) => [JSON.stringify(text), fill(text)] as const),
    ['brackets', '['.repeat(half) + ']'.repeat(half)],
    ['emphasis', '*a **b '.repeat(size / 16) + ' c** d*'.repeat(size / 16)],
    ['links', '['.repeat(half / 2) + '](b)'.repeat(half / 4)],
    ['runs of backticks', lines((i) => `${'`'.repeat(i)}a`)],
    ['nested lists', lines((i) => `${' '.repeat(2 * i)}- a`)],
    ['nested lists again and again', lines((i) => `${' '.repeat(2 * (i % 20))}- a`)],
    ['nested quotes', lines((i) => `${'>'.repeat(i + 1)} a`)],
    ['falling quotes', lines((i) => `${'>'.repeat(30 - (i % 30))} a`)],
    ['lines of a list item', `- ${lines(() => ')')}`],
    ['a table', `|a|b|\n|-|-|\n${lines(() => '|*a*|b|')}`],
  ]
}

t.test('the work for any text is limited', async (t) => {
  for (const size of [1_000, 20_000, 150_000])
    for (const [name, text] of corpus(size)) {
      const { tree, work } = parseMarkdown(text)
      const isPlain = tree.length === 1 && tree[0]?.attributes['class'] === 'plain'
      t.ok(work <= limits.work || isPlain, `${name}, ${size}: work ${work}`)
      t.ok(depthOf(tree) <= limits.depth + 4, `${name}, ${size}: depth ${depthOf(tree)}`)
      t.ok(sizeOf(tree) <= limits.nodes + 2, `${name}, ${size}: ${sizeOf(tree)} nodes`)
    }
})

t.test('the part beyond a limit is plain text and complete', async (t) => {
  const long = `**a**\n\n${'word '.repeat(25_000)}\n\n**b**`
  const tree = markdownTree(long)
  t.equal(shown(tree[0] ?? ''), '<p <strong a>>')
  t.match(tree.at(-1)?.attributes, { class: 'plain' })
  t.ok(textsOf(tree).endsWith('**b**'))

  const many = `${'**a** '.repeat(20)}\n\n`
  const cut = markdownTree(many.repeat(400))
  t.equal(shown(cut[0] ?? '').startsWith('<p <strong a>'), true)
  t.match(cut.at(-1)?.attributes, { class: 'plain' })
  t.equal(textsOf(cut).replaceAll(/[*\s]/g, ''), 'a'.repeat(8_000))

  const deep = markdownTree(`${'>'.repeat(100)} end`)
  t.ok(depthOf(deep) <= limits.depth)
  t.match(textsOf(deep), /end/)

  // Without limits, the lexer would need seconds for each of these texts.
  for (const [name, text] of [
    ['spaces', `a${' '.repeat(50_000)}b`],
    ['blank lines', `a${' \n'.repeat(25_000)}b`],
    ['lines of a list item', `- ${')\n'.repeat(20_000)}`],
    ['short lines of lists', '- \n-'.repeat(20_000)],
    ['lazy lines of quotes', '> - a\nb\n'.repeat(10_000)],
    ['nested quotes', `${'>'.repeat(50)} a\n`.repeat(1_500)],
  ] as const)
    t.strictSame(
      markdownTree(text),
      [{ tag: 'p', attributes: { class: 'plain' }, children: [text] }],
      name,
    )

  const costly = markdownTree(`*first*\n\n${'*a_ '.repeat(5_000)}\n\n*last*`)
  t.equal(shown(costly[0] ?? ''), '<p <em first>>')
  t.equal(costly[1]?.children.length, 1, 'the costly paragraph is one text')
  t.equal(shown(costly[2] ?? ''), '<p <em last>>', 'and the following paragraph is formatted')
})

t.test('any text: only allowed links, and every character is shown', async (t) => {
  const piece = fc.constantFrom(
    ...[
      '*',
      '**',
      '_',
      '`',
      '```\n',
      '[',
      '](',
      ')',
      '![',
      '<',
      '>',
      '> ',
      '- ',
      '1. ',
      '|',
      '|-|\n',
      '\n',
      '\n\n',
    ],
    ...[
      '    ',
      '# ',
      '&lt;',
      '&#106;',
      'javascript:',
      'https://x.example/',
      'a',
      ' b',
      '~~',
      '\\',
      '\u0000',
      '\u202e',
      '"',
    ],
  )
  void fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const tree = markdownTree(pieces.join(''))
      for (const { tag, attributes } of elementsOf(tree))
        if (tag === 'a') t.match(attributes['href'], /^(https?|mailto):/)
      if (/[ab]/.test(pieces.filter((text) => text === 'a' || text === ' b').join('')))
        t.match(JSON.stringify(tree), /[ab]/)
      t.ok(sizeOf(tree) <= limits.nodes)
    }),
    { numRuns: 500 },
  )
})
