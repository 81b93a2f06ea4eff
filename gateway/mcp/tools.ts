/**
 * Which tools a caller has: every entry of the catalog that it may call, each done by the row that would do it without the
 * protocol, with that row's permission. Boundary: says what there is and what a call means; performs nothing.
 */
import { builtinOf } from '../../protocol/actions/builtin.ts'
import type { CatalogEntry } from '../../protocol/actions/rows.ts'
import type { RowName } from '../../protocol/api.ts'
import type { JsonObject } from '../../protocol/common.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { McpTool } from '../../protocol/mcp/messages.ts'
import { entriesOf } from '../queries/action-catalog.ts'
import { authorize } from '../auth/authorize.ts'
import type { Caller } from '../auth/authenticate.ts'
import { rows, type Call } from '../call.ts'
import type { World } from '../ports.ts'

type Asking = Pick<World, 'view' | 'organization' | 'settings' | 'hash'>

/** A tool, and what a call of it is. */
export interface Offered {
  readonly tool: McpTool
  /** Its name in the catalog. */
  readonly name: string
  /** The row that does it. */
  readonly row: RowName
  /** A call takes as long as the run that it starts; others are answered at once. */
  readonly lasts: boolean
  /** Path slots and body of the row. */
  ask(input: JsonObject): Pick<Call, 'slots' | 'body'>
}

/** Seconds that one attempt of an action may take: the most that the row allows. */
const ACTION_TIMEOUT_S = 120
/** Names that every client passes on to its model: at most 64 letters, digits, `_` and `-`. */
const SAFE = /^[A-Za-z0-9_-]{1,64}$/
const mangled = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)

/** Names as clients see them. A safe one stays; of several that would come to be equal, each carries a mark of its own. */
export function shownNames(
  names: readonly string[],
  hash: (text: string) => string,
): Map<string, string> {
  const wanted = new Map<string, number>()
  for (const name of names) wanted.set(mangled(name), (wanted.get(mangled(name)) ?? 0) + 1)
  return new Map(
    names.map((name) => [
      name,
      SAFE.test(name) || (name.length <= 64 && wanted.get(mangled(name)) === 1)
        ? mangled(name)
        : `${mangled(name).slice(0, 55)}_${hash(name).slice(0, 8)}`,
    ]),
  )
}

/** What a call of an entry is; undefined: only agents call it. */
function meaningOf(
  { name, endpoint_kind }: CatalogEntry,
  brand: string,
): Pick<Offered, 'row' | 'lasts' | 'ask'> | undefined {
  if (endpoint_kind !== 'builtin')
    return {
      row: 'action.invoke',
      lasts: true,
      ask: (input) => ({
        slots: { action_name: name },
        body: { input, timeout_seconds: ACTION_TIMEOUT_S },
      }),
    }
  const which = builtinOf(brand, name)
  if (typeof which === 'object')
    return {
      row: 'workflow.run',
      lasts: true,
      ask: (input) => ({ slots: { id: which.workflow }, body: { input } }),
    }
  if (which === 'run.start')
    return {
      row: 'workflow.run',
      lasts: false,
      ask: ({ workflow, input = {} }) => ({ slots: { id: String(workflow) }, body: { input } }),
    }
  return which === 'run.get'
    ? {
        row: 'run.get',
        lasts: false,
        ask: ({ run_id }) => ({ slots: { id: String(run_id) }, body: {} }),
      }
    : undefined
}

/** A schema of an object; whatever else was given stands for no rule, because arguments always are one. */
const objectOf = (schema: JsonObject | undefined): McpTool['inputSchema'] =>
  schema && (schema['type'] === undefined || schema['type'] === 'object')
    ? { ...schema, type: 'object' }
    : { type: 'object' }
/** What the service does itself is idempotent for one job, which a call is not. */
function toolOf(entry: CatalogEntry, name: string, brand: string): McpTool {
  const {
    title,
    description,
    endpoint_kind,
    input_schema,
    output_schema,
    annotations: { read_only, destructive, idempotent },
  } = entry
  const annotations = {
    ...(title !== undefined && { title }),
    ...(read_only && { readOnlyHint: true }),
    ...(destructive && { destructiveHint: true }),
    ...(idempotent && endpoint_kind !== 'builtin' && { idempotentHint: true }),
  }
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: objectOf(input_schema),
    ...(output_schema?.['type'] === 'object' && { outputSchema: objectOf(output_schema) }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    _meta: { [`${brand}/name`]: entry.name },
  }
}
/** Workers may come; what is switched off does not. */
const usable = ({ readiness, endpoint_kind }: CatalogEntry): boolean =>
  readiness === 'ready' || endpoint_kind === 'worker'

/** Everything that a project offers, by name, whoever asks. */
export async function offeredIn(
  world: Asking,
  project: string,
): Promise<readonly Offered[] | Refusal> {
  const entries = await entriesOf(world, project)
  if (isRefusal(entries)) return entries
  const brand = world.settings.brand.toLowerCase()
  const shown = shownNames(
    entries.map(({ name }) => name),
    (text) => world.hash(text),
  )
  return entries.filter(usable).flatMap((entry) => {
    const meaning = meaningOf(entry, brand)
    return meaning
      ? [
          {
            tool: toolOf(entry, shown.get(entry.name) ?? entry.name, brand),
            name: entry.name,
            ...meaning,
          },
        ]
      : []
  })
}
/** Why a caller may not call a tool; undefined when it may. */
export const denied = (
  { settings }: Pick<World, 'settings'>,
  caller: Caller,
  { row, name }: { readonly row: string; readonly name: string },
): Refusal | undefined => {
  const permission = rows[row]?.shape.permission
  return (
    permission &&
    authorize(settings.brand, permission, caller, row === 'action.invoke' ? name : undefined)
  )
}
/** The tool of a name, as it is shown or as the catalog has it. */
export const offeredAs = (offered: readonly Offered[], name: string): Offered | undefined =>
  offered.find(({ tool }) => tool.name === name) ?? offered.find((one) => one.name === name)
