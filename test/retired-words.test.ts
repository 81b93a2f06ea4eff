/** Names, log lines and metrics contain no retired term, except where the glossary allows it. */
import t from 'tap'
import { namesIn } from './support/structure/declared-names.ts'
import {
  mentioning,
  retiredNames,
  retiredTerms,
  retiredTermsIn,
} from './support/structure/retired-terms.ts'
import { readSources } from './support/structure/sources.ts'

t.test('no name contains a retired term', async (t) => {
  const terms = retiredTerms()
  t.strictSame(retiredNames(namesIn(mentioning(readSources(), terms)), terms), [])
})

const table = `
## Retired terms

| term | use instead | still allowed |
|---|---|---|
| \`Cell\`, \`cells\` | \`ActorInstance\` | \`client/\` (tables), \`cellDivision\` |
| \`turnAway\` | \`reject\` | |
| \`MOST\` | \`MAX_…\` | |
| \`asking.ts\` | \`request-mux.ts\` | |

## Another section

| \`other\` | \`table\` | |
`
const planted = (file: string, text: string): string[] => {
  const terms = retiredTermsIn(table)
  const sources = mentioning(new Map([[file, text]]), terms)
  return retiredNames(namesIn(sources), terms).map((line) => line.replace(/^\S+ /, ''))
}

t.test('a retired term is found in every kind of name', async (t) => {
  const found: Readonly<Record<string, string>> = {
    'export interface CellState {}': 'CellState',
    'type Cell = string': 'Cell',
    'export const freshCell = 1': 'freshCell',
    'const { cells } = table()': 'cells',
    'const [cells] = table()': 'cells',
    'function turnAwayAll() {}': 'turnAwayAll',
    'class Table { #cells = 1 }': '#cells',
    'class Table { readCell() {} }': 'readCell',
    'class Table { constructor(readonly cell: string) {} }': 'cell',
    'interface Table { readonly cell_count: number }': 'cell_count',
    'type Table = { cells(): void }': 'cells',
    'run((cell) => 1)': 'cell',
    'function run(cell: string) {}': 'cell',
    'const MOST_LINES = 5': 'MOST_LINES',
  }
  for (const [text, name] of Object.entries(found))
    t.match(planted('nodes/some.ts', text), [new RegExp(`^declaration ${name}: use `)], text)
  t.strictSame(
    planted('nodes/some.ts', `log.warn({ event: 'cell_lost' }, ok ? \`the cell \${id}\` : 'none')`),
    ['log the cell : use ActorInstance', 'log cell_lost: use ActorInstance'],
  )
  t.strictSame(planted('nodes/some.ts', `gauge('cells_open', 'Open')`), [
    'metric cells_open: use ActorInstance',
  ])
  t.strictSame(planted('nodes/cell-table.ts', ''), ['file cell-table: use ActorInstance'])
  t.strictSame(planted('nodes/asking.ts', ''), ['file asking: use request-mux.ts'])
})

t.test('other names are accepted', async (t) => {
  for (const text of [
    'const excellent = 1, cellular = 2, turn = 3, away = 4',
    'function run() { const cell = 1 }',
    'const cellDivision = 1',
    'const most = 1, asking = 2, other = 3',
    `run('the cell')`,
    '// the cell',
    `import { Cell } from 'cells'`,
  ])
    t.strictSame(planted('nodes/some.ts', text), [], text)
  t.strictSame(planted('client/some.ts', 'const cell = 1'), [])
})

t.test('a text without the table is an error', async (t) => {
  t.throws(() => retiredTermsIn('# Glossary'))
})
