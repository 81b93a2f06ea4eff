/**
 * The endpoint table as a whole: every row is consistent, is used by a scenario, and does not
 * change unnoticed.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Compile } from 'typebox/compile'
import { localQueries } from '../gateway/queries/local.ts'
import { records } from '../gateway/query.ts'
import { permissions } from '../protocol/access/schema.ts'
import { api } from '../protocol/api.ts'
import { type Row, routeOf } from '../protocol/contract.ts'
import { errors } from '../protocol/errors.ts'
import { prefixes } from '../protocol/ids.ts'
import { down, up } from '../protocol/workers/socket.ts'
import { queryOf } from '../views/views.ts'

const rows = Object.entries(api) as [string, Row][]
const table: Readonly<Record<string, Row>> = api
const scenarios = join(import.meta.dirname, 'scenarios')
const read = (accept: (name: string) => boolean) =>
  readdirSync(scenarios, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && accept(name))
    .map((name) => readFileSync(join(scenarios, name), 'utf8'))
    .join('\n')
const names = (schema: unknown): string[] =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {})

t.test('every row is used by a scenario that names it', async (t) => {
  // These two files loop over the whole table, so they do not count as uses of individual rows.
  const text = read((name) => !/\b(isolation|restart)\.test\.ts$/.test(name))
  for (const [name, row] of rows)
    t.ok(row.shape.stream === 'socket' ? /\.worker\(/.test(text) : text.includes(`'${name}'`), name)
})

t.test('every frame of the worker socket occurs in a scenario', async (t) => {
  const text = read((name) => name.startsWith('workers'))
  for (const type of new Set([...Object.keys(up), ...Object.keys(down)]))
    t.ok(text.includes(`'${type}'`), type)
})

t.test('the shape of each row fits its verb', async (t) => {
  for (const [name, row] of rows) {
    const { method } = routeOf(row)
    const { shape } = row
    if (row.verb === 'command') {
      t.not(method, 'GET', `${name} changes something`)
      t.equal(
        [shape.to, shape.each, shape.relays].filter((who) => who !== undefined).length,
        1,
        `${name} says who decides`,
      )
      if (shape.to && 'mint' in shape.to)
        t.ok(shape.status === 201 || shape.status === 202, `${name} makes something`)
      if (method === 'DELETE')
        t.equal(shape.status, shape.reply ? undefined : 204, `${name} answers what it says`)
    } else if (shape.upload) {
      t.equal(method, 'POST', `${name} sends a body`)
      t.strictSame([shape.to, shape.each], [undefined, undefined], `${name}: the gateway answers`)
      t.equal(shape.upload, 'streamed', name)
    } else {
      t.equal(
        method,
        shape.body ? 'POST' : 'GET',
        `${name} reads, and only the question of a query is a body`,
      )
      t.strictSame(
        [shape.to, shape.each, shape.status ?? 200],
        [undefined, undefined, 200],
        `${name} only reads`,
      )
      t.equal(shape.stream !== undefined, row.verb === 'stream', name)
      if (shape.stream !== 'socket') t.ok(shape.reply, `${name} answers something`)
      if (names(shape.reply).includes('items'))
        t.ok(names(shape.body ?? shape.query).includes('limit'), `${name} is a list`)
    }
    t.ok(
      shape.reply !== undefined || shape.status === 204 || shape.stream === 'socket',
      `${name} answers with a body or with 204`,
    )
    const statuses = row.verb === 'blob' && !shape.upload ? [200, 206, 304] : [200, 201, 202, 204]
    for (const status of [shape.status ?? 200, ...(shape.alsoStatus ?? [])])
      t.ok(statuses.includes(status), name)
  }
})

t.test('all references of rows exist', async (t) => {
  for (const [name, row] of rows) {
    const { shape } = row
    const { slots } = routeOf(row)
    t.ok(
      shape.permission === 'authenticated' || shape.permission in permissions,
      `${name}: permission`,
    )
    for (const code of shape.errors ?? []) t.ok(code in errors, `${name}: ${code}`)
    t.equal(new Set(shape.errors).size, shape.errors?.length ?? 0, `${name} names each error once`)
    for (const target of [shape.alias, shape.as])
      if (target !== undefined)
        t.ok(table[target] && table[target]?.shape.alias === undefined, `${name}: ${target}`)
    t.equal(
      shape.tag === 'compat',
      shape.alias !== undefined,
      `${name}: other forms are listed apart`,
    )
    const meant = shape.as === undefined ? undefined : table[shape.as]
    if (meant) {
      const asked = ({ query, additions }: Row['shape']) =>
        names(query).filter((name) => !(additions && name === 'include'))
      t.strictSame(
        [row.verb, shape.permission, names(shape.body), asked(shape), shape.to],
        [
          meant.verb,
          meant.shape.permission,
          names(meant.shape.body),
          asked(meant.shape),
          meant.shape.to,
        ],
        `${name} is ${shape.as} in another form`,
      )
      t.ok(
        routeOf(meant).slots.every((slot) => slots.includes(slot) || slot === 'project'),
        name,
      )
    }
    const { to, each } = shape
    if (to && 'slot' in to)
      t.ok(slots.includes(to.slot) && to.prefix in prefixes, `${name}: the slot ${to.slot}`)
    if (to && 'derive' in to)
      t.ok(slots.includes(to.derive) && to.prefix in prefixes, `${name}: the slot ${to.derive}`)
    if (to && to.kind !== 'organization')
      t.ok(slots.includes('project') || shape.ofCaller, `${name} is below a project`)
    for (const relayed of shape.relays ?? [])
      t.ok(
        table[relayed]?.shape.permission !== 'authenticated' &&
          table[relayed]?.shape.relays === undefined,
        `${name} relays to ${relayed}`,
      )
    if (each)
      t.ok(
        names(shape.body).includes(each.over) &&
          table[each.command]?.verb === 'command' &&
          table[each.command]?.shape.to,
        `${name}: ${each.command} for each of ${each.over}`,
      )
    t.equal(
      names(shape.body).some((field) => slots.includes(field)) ||
        names(shape.query).some((field) => slots.includes(field)),
      false,
      `${name}: no field has the name of a slot`,
    )
  }
})

t.test('no two rows have the same method and path', async (t) => {
  const shapes = rows.map(([, row]) => row.route.replaceAll(/:\w+/g, ':'))
  t.strictSame(
    shapes.filter((shape, index) => shapes.indexOf(shape) !== index),
    [],
  )
})

t.test('requests reject unknown fields, lists share paging, all schemas compile', async (t) => {
  for (const [name, { shape }] of rows) {
    for (const schema of [shape.body, shape.query, shape.reply]) if (schema) Compile(schema)
    for (const schema of [shape.body, shape.query])
      if (schema)
        t.equal(
          (schema as { additionalProperties?: unknown }).additionalProperties,
          false,
          `${name} refuses unknown fields`,
        )
    const { limit } =
      (shape.query as { properties?: Record<string, unknown> } | undefined)?.properties ?? {}
    if (limit)
      t.match(
        limit,
        {
          minimum: 1,
          maximum: 200,
          ...(names(shape.reply).includes('has_more') && { default: 20 }),
        },
        name,
      )
    const asked = [...names(shape.query), ...names(shape.body)]
    if (names(shape.reply).includes('next_cursor'))
      t.ok(
        (asked.includes('cursor') || asked.includes('after')) &&
          asked.includes('limit') &&
          names(shape.reply).includes('has_more'),
        `${name} is a list`,
      )
  }
})

/** Returns a row without the properties on which clients do not depend. */
function published({ shape, ...row }: Row): object {
  const {
    answeredBy,
    viewer,
    locateBy,
    selfAccess,
    grantsPermissions,
    leavesChannels,
    keyScope,
    mcp,
    cliExample,
    ...known
  } = shape
  return { ...row, shape: known }
}
t.test('the contract equals the locked one', async (t) => {
  const lock = join(import.meta.dirname, 'contract.lock.json')
  const hash = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex')
  const now: Record<string, string> = Object.fromEntries([
    ...rows.map(([name, row]) => [`row ${name}`, hash(published(row))] as const),
    ...Object.entries(up).map(([type, schema]) => [`frame ${type}`, hash(schema)] as const),
    ...Object.entries(down).map(([type, schema]) => [`frame down ${type}`, hash(schema)] as const),
    ...Object.entries(errors).map(([code, meaning]) => [`error ${code}`, hash(meaning)] as const),
  ])
  if (process.env['CONTRACT'] === 'accept') writeFileSync(lock, `${JSON.stringify(now, null, 2)}\n`)
  const agreed = JSON.parse(readFileSync(lock, 'utf8')) as Record<string, string>
  const changed = [...new Set([...Object.keys(now), ...Object.keys(agreed)])].filter(
    (name) => now[name] !== agreed[name],
  )
  t.strictSame(
    changed,
    [],
    'rows, frames or errors differ from test/contract.lock.json. ' +
      'Clients of others depend on them: only add. If the change is meant, run: ' +
      'CONTRACT=accept node --import @oxc-node/core/register test/contract.test.ts',
  )
})

t.test('every query has a handler', async (t) => {
  for (const [name, row] of Object.entries(table)) {
    if (row.verb !== 'query') continue
    t.ok(
      queryOf(name) !== undefined || (row.shape.as ?? name) in { ...localQueries, ...records },
      `${name} is answered by a view or by the edge`,
    )
  }
})
