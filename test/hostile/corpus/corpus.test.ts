/**
 * Hostile texts at every location of the endpoint table where a body or a query contains text.
 * Invariants: every request is answered as its row documents, no request fails with an internal
 * error, and memory stays bounded. With `HOSTILE_RUNS=20`, twenty times as many texts are tried at
 * each location, up to all texts of its kind.
 */
import t from 'tap'
import { api } from '../../../protocol/api.ts'
import { routeOf } from '../../../protocol/contract.ts'
import type { Code } from '../../../protocol/errors.ts'
import { type Answered, type Asked, serviceWithClient } from '../support/ask.ts'
import { seed, tries } from '../support/campaign.ts'
import { bad } from '../support/judge.ts'
import { furnish, type Place, placedPath, queryFor, rows } from '../support/rows.ts'
import { usage } from '../support/usage.ts'
import { fileNames, files, forms } from './documents.ts'
import { classified, kindOf, type TextPlace, textPlaces } from './places.ts'
import { corpus } from './texts.ts'

/**
 * The maximum growth of the process during all tests, in bytes. The bound is generous, because
 * accepted texts are stored.
 */
const MAX_GROWTH_BYTES = 1024 ** 3
/**
 * The minimum number of texts that are tried at each location in a normal run. At the locations of
 * a rare kind, more texts are tried, so that every text is used.
 */
const PER_PLACE = 2
const PARALLEL = 16
/**
 * The maximum number of requests in one project. Records with equal names make some rows slower.
 * For example, the rows of blueprints read every loop that has the same name as a loop of the
 * blueprint.
 */
const PER_PROJECT = 500
const nowhere: readonly Code[] = ['not_found', 'method_not_allowed']

const { s, client } = await serviceWithClient(t)
t.setTimeout(tries(200_000))
t.comment(`HOSTILE_SEED=${seed}`)
const { places, unknown } = textPlaces()

t.test('the kind of every text location is classified', async (t) => {
  t.strictSame(unknown, [], 'classify these in test/hostile/corpus/places.ts')
  const used = new Set(places.map(({ path }) => path.findLast((name) => name !== '*')))
  t.strictSame(
    classified.filter((name) => !used.has(name)),
    [],
    'every classified name is used',
  )
  for (const kind of Object.keys(corpus))
    t.ok(
      places.some((place) => place.kind === kind),
      `there is a place of the kind ${kind}`,
    )
  t.equal(kindOf(['spec', 'a_new_member']), undefined)
})

/**
 * Yields the locations and texts of this run: every text is tried at some locations of its kind,
 * and every location with some texts of its kind.
 */
function* pairs(): Generator<[TextPlace, string]> {
  for (const [kind, texts] of Object.entries(corpus)) {
    const sites = places.filter((place) => place.kind === kind)
    const each = Math.min(
      texts.length,
      tries(Math.max(PER_PLACE, Math.ceil((2 * texts.length) / sites.length))),
    )
    for (const [index, site] of sites.entries())
      for (let n = 0; n < each; n++) {
        const text = texts[(seed + index * each + n) % texts.length]
        if (text !== undefined) yield [site, text]
      }
  }
}

const HOLE = '\u0001hole\u0001'
const authorization = `Bearer ${s.key}`
/** Replaces lone surrogates, which a URL cannot contain. */
const wellFormed = (text: string): string => Buffer.from(text).toString()
function requestOf({ row, in: where, holding }: TextPlace, text: string, place: Place): Asked {
  const { method } = routeOf(api[row])
  const path = placedPath(row, place)
  if (where === 'body')
    return {
      method,
      path: `${path}${queryFor(row)}`,
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(holding(HOLE, place)).replace(JSON.stringify(HOLE), () => text),
    }
  const plain = text.startsWith('"') ? (JSON.parse(text) as string) : text
  const query = Object.entries(holding(plain, place)).map(
    ([name, value]) => `${name}=${encodeURIComponent(wellFormed(String(value).slice(0, 8000)))}`,
  )
  return { method, path: `${path}?${query.join('&')}`, headers: { authorization } }
}

const resourceOf = (name: string): string => name.split('.')[0] ?? name
/**
 * Whether the row read the location: it accepted the request, or its refusal names this field,
 * reports invalid JSON, or concerns the size.
 */
const isReached = ({ path }: TextPlace, { status, text }: Answered): boolean =>
  status < 300 ||
  status === 413 ||
  text.includes('JSON') ||
  text.includes(path.findLast((name) => name !== '*') ?? '')
const reached = new Set<TextPlace>()
const queues: { readonly resource: string; readonly queue: [TextPlace, string][] }[] = []
for (const pair of pairs()) {
  const resource = resourceOf(pair[0].row)
  const last = queues.findLast((one) => one.resource === resource)
  if (last && last.queue.length < PER_PROJECT) last.queue.push(pair)
  else queues.push({ resource, queue: [pair] })
}
const base = process.memoryUsage().rss
let asked = 0
let accepted = 0
for (const { resource, queue } of queues)
  t.test(`${resource}: ${queue.length} requests`, { timeout: tries(60_000) }, async (t) => {
    const place = await furnish(s)
    const faults: string[] = []
    const next = queue.values()
    await Promise.all(
      Array.from({ length: PARALLEL }, async () => {
        for (const [site, text] of next) {
          const request = requestOf(site, text, place)
          const answer = await client
            .ask(request)
            .catch((error: Error): Answered => ({ status: 0, headers: {}, text: error.message }))
          const sent = request.path.length + Buffer.byteLength(request.body ?? '')
          const fault =
            answer.status === 0
              ? `no answer: ${answer.text}`
              : bad(site.row, api[site.row], answer, sent, nowhere)
          asked++
          if (answer.status < 300) accepted++
          if (isReached(site, answer)) reached.add(site)
          if (fault !== undefined)
            faults.push(`${site.row} ${site.path.join('.')} ${text.slice(0, 200)}: ${fault}`)
        }
      }),
    )
    t.strictSame(faults.slice(0, 10), [], `${faults.length} faults`)
  })

t.test('most locations are reached by a text', async (t) => {
  const missed = places.filter((place) => !reached.has(place))
  t.ok(
    missed.length < places.length / 10,
    `${missed.length} of ${places.length}: ${missed.map(({ row, path }) => `${row} ${path.join('.')}`).join(', ')}`,
  )
})

t.test('forms with a file: every file, and every malformed form', async (t) => {
  const place = await furnish(s)
  const path = placedPath('session.attach', place)
  const part = (head: string, bytes: Buffer) =>
    Buffer.concat([Buffer.from(`--x\r\n${head}\r\n\r\n`), bytes, Buffer.from('\r\n--x--\r\n')])
  const file = 'Content-Disposition: form-data; name="file"; filename='
  const bodies = [
    ...files.map((bytes) => part(`${file}"a.bin"`, bytes)),
    ...fileNames.map((name) => part(`${file}${name}`, Buffer.from('x'))),
    ...forms.map((text) => Buffer.from(text, 'latin1')),
  ]
  const faults: string[] = []
  for (const body of bodies) {
    const answer = await client.ask({
      method: 'POST',
      path,
      headers: { authorization, 'content-type': 'multipart/form-data; boundary=x' },
      body,
    })
    const fault = bad('session.attach', api['session.attach'], answer, body.length, nowhere)
    if (fault !== undefined) faults.push(`${body.toString('latin1').slice(0, 200)}: ${fault}`)
  }
  t.strictSame(faults, [])
  asked += bodies.length
})

t.test('the service is intact and its memory bounded', async (t) => {
  t.equal((await s.raw('GET', '/readyz')).status, 200)
  t.equal((await usage(s)).failed, 0, 'no request failed inside')
  t.equal(({} as { admin?: unknown }).admin, undefined)
  const grown = process.memoryUsage().rss - base
  t.ok(grown < MAX_GROWTH_BYTES, `${Math.round(grown / 1024 ** 2)} MiB more`)
  t.comment(
    `${places.length} places of ${rows.length} rows, ${asked} requests, ${accepted} accepted, ` +
      `${Math.round(grown / 1024 ** 2)} MiB more`,
  )
})
