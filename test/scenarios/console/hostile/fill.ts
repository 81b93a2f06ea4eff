/**
 * Writes hostile values to every field that clients can set according to the schemas of the
 * endpoint table. Fields of a row that do not exclude each other are written in one request, so
 * that a small number of records covers all fields.
 *
 * Invariant: every field that is written is either in `accepted`, because the service accepted one
 * of its hostile values, or in `refused`, because the service refused all of them.
 */
import { api, type RowName } from '../../../../protocol/api.ts'
import { type Row, routeOf } from '../../../../protocol/contract.ts'
import { baseOf, type TextPlace, textPlaces } from '../../../hostile/corpus/places.ts'
import { encodedBody } from '../../../hostile/support/ask.ts'
import { type Place, placedPath, queryFor } from '../../../hostile/support/rows.ts'
import type { Service } from '../../../support/service.ts'
import { choicesFor } from './texts.ts'

/**
 * A field to fill. `mark` identifies its hostile texts. `choices` are the values to try, and
 * `tried` is the number of those tried so far.
 */
interface Field {
  readonly site: TextPlace
  readonly mark: number
  readonly choices: readonly string[]
  tried: number
}
/** A field with the last refusal of the service. */
interface Refused {
  readonly row: RowName
  readonly path: string
  readonly reason: string
}
export interface Filled {
  /** The row and the path of each field that has a hostile value, by mark. */
  readonly accepted: ReadonlyMap<number, string>
  readonly refused: readonly Refused[]
  /** Ids of the created records, by the row that created them. */
  readonly made: ReadonlyMap<RowName, readonly string[]>
  readonly requests: number
}

/**
 * Returns a key for a field. The key is the same in all rows that set the field, whether they
 * create or change the record, and at every place where a step or a definition may occur.
 */
function fieldOf(site: TextPlace): string {
  const path = pathOf(site)
  const ofSpec = /^(?:spec\.)?((?:steps|cleanup|limits|defaults|output|run_name)\b.*)/.exec(
    path,
  )?.[1]
  if (ofSpec !== undefined && /^(workflow|loop|run)\./.test(site.row))
    return `spec ${ofSpec.replace(/^steps\.config\.(branches\.)?steps\./, 'steps.')}`
  return `${site.row.split('.')[0]} ${path}`
}
const pathOf = (site: TextPlace): string =>
  site.path.map((name) => (name === '*' ? 'any' : name)).join('.')
const hole = (mark: number): string => `q${mark}q`

/** Returns a request body for the row, with a placeholder for the value of each field. */
function template(row: RowName, fields: readonly Field[], place: Place): object {
  const base = baseOf(row, place)
  const body = fields.reduce((made, { site, mark }) => site.put(hole(mark), made, place), base)
  // `put` adds these members for every row, although only other rows need them. They are removed
  // below.
  const added = ['agent_id', 'workflow_id'].filter(
    (name) => !(name in base) && !fields.some(({ site }) => site.path[0] === name),
  )
  return Object.fromEntries(Object.entries(body).filter(([name]) => !added.includes(name)))
}
/** Groups the fields so that one body can contain all fields of a group. */
function groupsOf(row: RowName, fields: readonly Field[], place: Place): Field[][] {
  const groups: { fields: Field[]; body: object }[] = []
  for (const field of fields) {
    const last = groups.at(-1)
    const body = last && field.site.put(hole(field.mark), last.body, place)
    const text = JSON.stringify(body)
    if (last && body && last.fields.every(({ mark }) => text.includes(`"${hole(mark)}"`))) {
      last.fields.push(field)
      last.body = body
    } else groups.push({ fields: [field], body: template(row, [field], place) })
  }
  return groups.map((group) => group.fields)
}

/**
 * Whether `fillAll` writes a field. It skips the fields of rows that store no record, that concern
 * the caller's own access, or that are aliases. It also skips the resources of a blueprint, because
 * they are bodies of other rows.
 */
const isWritten = ({ row, path: [first] }: TextPlace): boolean =>
  api[row].verb === 'command' &&
  routeOf(api[row]).method !== 'DELETE' &&
  (api[row] as Row).shape.alias === undefined &&
  !/^(mcp|stream|device|oauth_origins)\./.test(row) &&
  !(row === 'blueprint.apply' && first === 'resources')
/**
 * Returns 1 for rows that end or change records that other rows need, and 0 for other rows. Rows
 * with 1 are sent last.
 */
const endsRecord = (row: RowName): number =>
  Number(/cancel|respond|review|delete|release|detach|revoke|_many|bulk|update|replace/.test(row))

/** Fills every field of the project's records, and of records that it creates. */
export async function fillAll(s: Service, place: Place): Promise<Filled> {
  const accepted = new Map<number, string>()
  const refused: Refused[] = []
  const made = new Map<RowName, string[]>()
  let requests = 0
  const send = async (row: RowName, fields: readonly Field[]) => {
    requests++
    const text = fields.reduce(
      (body, { mark, choices, tried }) =>
        body.replaceAll(JSON.stringify(hole(mark)), () => choices[tried] ?? '""'),
      JSON.stringify(template(row, fields, place)),
    )
    const { headers, body } = encodedBody(api[row], JSON.parse(text) as object)
    const answer = await s.raw(
      routeOf(api[row]).method,
      `${placedPath(row, place)}${queryFor(row)}`,
      { headers: { ...headers }, ...(body !== undefined && { body }) },
    )
    return { ok: answer.status < 300, body: answer.body as Readonly<Record<string, unknown>> }
  }
  const attempt = async (row: RowName, all: readonly Field[]): Promise<void> => {
    let fields = [...all]
    while (fields.length > 0) {
      const { ok, body } = await send(row, fields)
      if (ok) {
        for (const { site, mark } of fields) accepted.set(mark, `${row} ${pathOf(site)}`)
        const id =
          body['id'] ??
          body['source_event_id'] ??
          (body['session'] as { id?: unknown } | undefined)?.id
        if (typeof id === 'string') made.set(row, [...(made.get(row) ?? []), id])
        return
      }
      const named = namedFields(body)
      const wrong = fields.filter(({ site }) => named.some((name) => isOf(name, pathOf(site))))
      if (wrong.length === 0 && fields.length > 1) {
        const half = Math.ceil(fields.length / 2)
        await attempt(row, fields.slice(0, half))
        await attempt(row, fields.slice(half))
        return
      }
      for (const field of wrong.length > 0 ? wrong : fields) {
        field.tried++
        if (field.tried < field.choices.length) continue
        fields = fields.filter((one) => one !== field)
        const reason = JSON.stringify(body['error'] ?? body).slice(0, 300)
        refused.push({ row, path: pathOf(field.site), reason })
      }
    }
  }
  const fields = new Map<string, TextPlace>()
  for (const site of textPlaces().places)
    if (site.in === 'body' && isWritten(site) && !fields.has(fieldOf(site)))
      fields.set(fieldOf(site), site)
  const sites = [...fields.values()]
  const byRow = new Map<RowName, Field[]>()
  for (const [mark, site] of sites.entries()) {
    const choices = choicesFor(site.kind, mark, site.longest)
    const field = { site, mark, choices, tried: 0 }
    byRow.set(site.row, [...(byRow.get(site.row) ?? []), field])
  }
  const ordered = [...byRow].sort(([a], [b]) => endsRecord(a) - endsRecord(b))
  for (const [row, fields] of ordered) {
    for (const group of groupsOf(row, fields, place)) await attempt(row, group)
  }
  return { accepted, refused, made, requests }
}

/** Returns the field names in a refusal, without list indices. */
function namedFields(body: Readonly<Record<string, unknown>>): string[] {
  const { details } = (body['error'] ?? {}) as { details?: { fields?: { field?: unknown }[] } }
  return (details?.fields ?? []).map(({ field }) =>
    String(field)
      .replaceAll(/\[\d+\]/g, '')
      .replaceAll(/\["?|"?\]/g, '.')
      .replaceAll(/\.(\d+\.)?/g, '.')
      .replace(/\.$/, ''),
  )
}
const isOf = (named: string, path: string): boolean =>
  named === path || path.startsWith(`${named}.`) || named.startsWith(`${path}.`)
