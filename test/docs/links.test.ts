/**
 * The documents of the repository: links, paths of source files, the size of the architecture page
 * and the form of decision records.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import t from 'tap'
import { anchorsIn, withoutFences } from './anchors.ts'
import { inlineCode } from './inline.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const markdownIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (entry.isFile()) return path.endsWith('.md') ? [path] : []
    return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : markdownIn(path)
  })
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...markdownIn('docs'),
  ...markdownIn('examples'),
  ...markdownIn('bench').filter((path) => posix.dirname(path) === 'bench'),
]

interface Link {
  readonly line: number
  readonly target: string
}
function relativeLinks(text: string): Link[] {
  const shown = withoutFences(text).replace(/`[^`]*`/g, (code) => code.replace(/[^\n]/g, ' '))
  const found = shown.matchAll(/\]\(<?([^)\s>]+)[^)]*\)|^ {0,3}\[[^\]]+\]: +<?([^\s>]+)/gm)
  return [...found].flatMap(({ index, 1: inline, 2: reference }) => {
    const target = inline ?? reference ?? ''
    const line = shown.slice(0, index).split('\n').length
    return /^[a-z]+:/i.test(target) ? [] : [{ line, target }]
  })
}
function faultOf(document: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? document : posix.join(posix.dirname(document), decodeURI(path))
  if (!existsSync(join(root, file))) return `${file} does not exist`
  if (anchor === undefined) return undefined
  if (!file.endsWith('.md')) return 'only Markdown has anchors'
  return anchorsIn(read(file)).has(decodeURIComponent(anchor))
    ? undefined
    : `${file} has no heading #${anchor}`
}

t.test('links and anchors of the documents resolve', async (t) => {
  for (const document of documents)
    for (const { line, target } of relativeLinks(read(document)))
      t.equal(faultOf(document, target), undefined, `${document}:${line} ${target}`)
})

/** Words of inline code that are paths in the repository. A line number may follow the path. */
const PATH = /^((?:protocol|actors|gateway|views|nodes|client|test|bench|docs)\/[^\s:]*)(:\d+)?$/
/** Entries of .gitignore, such as build output, which do not exist in a fresh clone. */
const built = new Set(readFileSync(join(root, '.gitignore'), 'utf8').split('\n'))
/** Globs, placeholders and shortened paths, which refer to no particular file. */
const PATTERN = /[*{}<>…$]/

t.test('paths in the text exist', async (t) => {
  // The history of measurements may mention files that no longer exist.
  for (const document of documents.filter((path) => path !== 'bench/HISTORY.md'))
    for (const { line, code } of inlineCode(read(document)))
      for (const word of code.split(/\s+/)) {
        const path = PATH.exec(word)?.[1]
        if (path !== undefined && !PATTERN.test(path) && !built.has(path))
          t.ok(existsSync(join(root, path)), `${document}:${line} ${path}`)
      }
})

const wordsIn = (text: string): number => text.split(/\s+/).filter(Boolean).length
/**
 * Returns the paragraphs of a text: its parts between empty lines, except headings, tables, lists
 * and blocks.
 */
const paragraphsOf = (text: string): string[] =>
  withoutFences(text)
    .split(/\n\s*\n/)
    .map((part) => part.trim())
    .filter((part) => part !== '' && !/^(#|\||[-*] |\d+\. |<!--)/.test(part))

t.test('the architecture page can be read in one sitting', async (t) => {
  const text = read('docs/architecture.md')
  t.ok(wordsIn(text) <= 3500, `${wordsIn(text)} words`)
  for (const part of paragraphsOf(text))
    t.ok(wordsIn(part) <= 120, `${wordsIn(part)} words: ${part.slice(0, 60)}`)
})

t.test('decision records have a context, a decision and its consequences', async (t) => {
  const records = markdownIn('docs/adr').filter((path) => /\/\d{4}-[^/]+\.md$/.test(path))
  t.ok(records.length >= 12, `${records.length} records`)
  for (const record of records) {
    const anchors = anchorsIn(read(record))
    for (const part of ['context', 'decision', 'consequences'])
      t.ok(anchors.has(part), `${record} has the part ${part}`)
  }
})

t.test('anchors follow the rule of GitHub', async (t) => {
  const text = [
    '# A `code` and [a link](x.md): *twice*!',
    '## GET /v1/runs',
    '## Who, what & why',
    '## Same',
    '## Same',
    '```sh',
    '# a comment of a script',
    '```',
    '<a id="own"></a>',
  ].join('\n')
  t.strictSame(
    [...anchorsIn(text)],
    ['own', 'a-code-and-a-link-twice', 'get-v1runs', 'who-what--why', 'same', 'same-1'],
  )
})

t.test('links in code are no links', async (t) => {
  const text = [
    '[a](b.md#c)',
    '`[d](e.md)` ![f](g.png "h")',
    '```',
    '[i](j.md)',
    '```',
    '[k]: l.md',
  ]
  t.strictSame(relativeLinks([...text, '[m](https://example.org)'].join('\n')), [
    { line: 1, target: 'b.md#c' },
    { line: 2, target: 'g.png' },
    { line: 6, target: 'l.md' },
  ])
})
