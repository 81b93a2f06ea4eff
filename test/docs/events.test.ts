/** The tables of docs/events.md: all events that the service publishes, with their fields. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventCatalog } from '../../protocol/events/catalog.ts'
import { emittedTypes } from '../../protocol/events/types.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/events.md'), 'utf8')

/** Returns the cells of the rows of the table whose header has these cells. */
function rowsOf(...header: readonly string[]): string[][] {
  const [, after = ''] = page.split(`| ${header.join(' | ')} |\n`)
  const [table = ''] = after.split('\n\n')
  return table
    .split('\n')
    .slice(1)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}
const codeIn = (text: string): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

/** Returns the names of the members of a schema, each followed by `?` if it is optional. */
function membersOf(schema: unknown): string[] {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: object
    readonly required?: readonly string[]
  }
  return Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`))
}

t.test('the table of events has every event of the catalog', async (t) => {
  const named = rowsOf('event', 'published when', '`source_id`').flatMap(([events = '']) =>
    codeIn(events),
  )
  t.strictSame(named.filter((name) => !name.includes('<')).sort(), [...emittedTypes].sort())
})

t.test('the table of fields agrees with the catalog', async (t) => {
  const rows = rowsOf('event', 'fields of `event`', 'fields of `meta`')
  const known = new Map(
    rows.flatMap(([events = '', ...fields]) => codeIn(events).map((name) => [name, fields])),
  )
  t.strictSame([...known.keys()].sort(), [...emittedTypes].sort())
  for (const { event_types } of eventCatalog(true).items)
    for (const { name, event_schema, meta_schema } of event_types) {
      if (!emittedTypes.has(name)) continue
      const [event = '', meta = ''] = known.get(name) ?? []
      t.strictSame(codeIn(event), membersOf(event_schema), `event of ${name}`)
      t.strictSame(codeIn(meta), membersOf(meta_schema), `meta of ${name}`)
    }
})
