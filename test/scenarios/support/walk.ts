/**
 * Calls every read operation with every id that fits its path. The values of a path parameter are
 * the ids (or, without ids, the names) of the items in the list that precedes the parameter in the
 * path. If this list has not been read, they are taken from the fields of earlier responses that
 * have the parameter's name. So are the values of required query parameters. Therefore, new
 * operations are covered automatically.
 */
import { api, type RowName } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { requestOf, type Service } from '../../support/service.ts'

/** The response to one request, as text. */
export interface Read {
  readonly row: RowName
  readonly path: string
  readonly status: number
  readonly text: string
}
type Input = Readonly<Record<string, string>>
interface Request {
  readonly row: RowName
  readonly input: Input
  readonly streamed: boolean
}
/** Number of concurrent requests. */
const CONCURRENCY = 8
/** Milliseconds for which a stream is read. */
const LISTEN_MS = 200

/** Read operations, ordered by their number of path parameters. */
export const reading = (Object.entries(api) as [RowName, Row][])
  .filter(([, { route, shape }]) => route.startsWith('GET ') && shape.stream !== 'socket')
  .sort(([, a], [, b]) => routeOf(a).slots.length - routeOf(b).slots.length)

interface Schema {
  readonly properties?: Readonly<Record<string, { readonly type?: string }>>
  readonly required?: readonly string[]
}
/**
 * Returns query parameters that make an operation return as much as possible.
 * @param search the value of search parameters.
 */
function widest({ properties = {} }: Schema, search: string): Input {
  const wanted = { limit: 100, after_sequence: 0, since: 0, q: search }
  return Object.fromEntries(
    Object.entries(wanted)
      .filter(
        ([name, value]) =>
          value !== '' && properties[name]?.type === (typeof value).replace('number', 'integer'),
      )
      .map(([name, value]) => [name, String(value)]),
  )
}

/** Sends a request and reads its response. A stream is read for `LISTEN_MS` only. */
async function read(s: Service, key: string, { row, input, streamed }: Request): Promise<Read> {
  const { path } = requestOf(api[row], input)
  const ending = new AbortController()
  const timer = setTimeout(() => ending.abort(), LISTEN_MS)
  let text = ''
  let status = 0
  try {
    const answer = await fetch(s.url + path, {
      headers: {
        authorization: `Bearer ${key}`,
        ...(streamed && { accept: 'text/event-stream' }),
      },
      ...(streamed && { signal: ending.signal }),
    })
    status = answer.status
    const decoder = new TextDecoder()
    for await (const piece of answer.body ?? []) text += decoder.decode(piece, { stream: true })
  } catch (error) {
    if (!ending.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
  return { row, path, status, text }
}

/**
 * The requests of one walk over all read operations. They can be repeated as another principal.
 */
export class Walk {
  readonly #requests: Request[] = []
  /**
   * Known values of parameters. A key is the name of a field, or `/` followed by the name of a
   * list.
   */
  readonly #found = new Map<string, Set<string>>()

  /**
   * Calls every read operation as a principal that may read everything. Returns the walk with its
   * requests, and the responses.
   * @param search the value of search parameters.
   */
  static async begin(s: Service, key: string, search: string): Promise<[Walk, readonly Read[]]> {
    const walk = new Walk()
    const answers: Read[] = []
    for (const [name, row] of reading) {
      const ways =
        row.shape.stream === undefined
          ? [false]
          : row.shape.stream === 'sse'
            ? [true]
            : [false, true]
      const requests = walk
        .#inputs(row, search)
        .flatMap((input) => ways.map((streamed) => ({ row: name, input, streamed })))
      const given = await all(s, key, requests)
      for (const answer of given) walk.#learn(row, answer)
      walk.#requests.push(...requests)
      answers.push(...given)
    }
    return [walk, answers]
  }
  again(s: Service, key: string): Promise<readonly Read[]> {
    return all(s, key, this.#requests)
  }

  #inputs(row: Row, search: string): readonly Input[] {
    const { path, slots } = routeOf(row)
    const query = (row.shape.query ?? {}) as Schema
    const listed = (slot: string): string =>
      path.slice(0, path.indexOf(`/:${slot}`)).replace(/.*\//, '/')
    return [...slots, ...(query.required ?? [])]
      .filter((name) => name !== 'project' && name !== 'q')
      .reduce<readonly Input[]>(
        (inputs, name) => {
          const items = slots.includes(name) ? this.#found.get(listed(name)) : undefined
          const values = [...(items ?? this.#found.get(name) ?? [])]
          return inputs.flatMap((input) => values.map((value) => ({ ...input, [name]: value })))
        },
        // A search would exclude some runs, but other operations need the ids of all runs.
        [widest(query, row.shape.tag === 'runs' ? '' : search)],
      )
  }
  /**
   * Stores the id of each item of a list, or the name of an item without id, under the name of the
   * list. Also stores each text value under the name of its field.
   */
  #learn(row: Row, { status, text }: Read): void {
    if (status !== 200 || !text.startsWith('{')) return
    const list = routeOf(row).path.replace(/.*\//, '')
    const { items } = JSON.parse(text) as { readonly items?: unknown }
    if (Array.isArray(items)) {
      const known = this.#found.get(`/${list}`) ?? new Set()
      this.#found.set(`/${list}`, known)
      for (const { id, name } of items as readonly Readonly<Record<string, unknown>>[])
        known.add(typeof id === 'string' ? id : String(name))
    }
    for (const [, field = '', value = ''] of text.matchAll(/"(\w+)":"([^"]*)"/g))
      this.#add(field, value)
  }
  #add(name: string, value: string): void {
    const known = this.#found.get(name) ?? new Set()
    this.#found.set(name, known.add(value))
  }
}

async function all(
  s: Service,
  key: string,
  requests: readonly Request[],
): Promise<readonly Read[]> {
  const answers: Read[] = []
  const left = requests.entries()
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const [index, request] of left) answers[index] = await read(s, key, request)
    }),
  )
  return answers
}
