/**
 * The tools of a project: every catalog entry that a client can call. Each tool maps to an API row,
 * and needs the permission of that row. This file only describes tools; `call.ts` calls them.
 */
import { builtinOf } from '../../protocol/actions/builtin.ts'
import type { CatalogEntry } from '../../protocol/actions/rows.ts'
import type { RowName } from '../../protocol/api.ts'
import type { JsonObject } from '../../protocol/common.ts'
import { isEnvironmentAction } from '../../protocol/environments/actions.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { McpTool } from '../../protocol/mcp/messages.ts'
import { toolName } from '../../protocol/naming.ts'
import type { Caller } from '../auth/authenticate.ts'
import { authorize } from '../auth/authorize.ts'
import { type Call, rows } from '../call.ts'
import type { World } from '../ports.ts'
import { entriesOf } from '../queries/action-catalog.ts'

type Asking = Pick<World, 'view' | 'organization' | 'settings' | 'hash'>

/** A tool, and the row that a call to the tool executes. */
export interface Offered {
  readonly tool: McpTool
  /** The tool's name in the catalog, which may differ from the name that clients see. */
  readonly name: string
  /** Name of the row that a call executes. */
  readonly row: RowName
  /**
   * Whether a call is answered only when the run that it starts has ended. Other calls are answered
   * immediately.
   */
  readonly lasts: boolean
  /** Returns the path slots and the body of the call to the row. */
  ask(input: JsonObject): Pick<Call, 'slots' | 'body'>
}

/**
 * Timeout of one attempt of an action, in seconds: the maximum that the row `action.invoke` allows.
 */
const ACTION_TIMEOUT_S = 120
/** Matches the names that MCP clients accept unchanged: at most 64 letters, digits, `_` and `-`. */
const SAFE = /^[A-Za-z0-9_-]{1,64}$/

/**
 * Maps the names of the catalog to the names that clients see. A safe name is unchanged. In any
 * other name, unsafe characters are replaced. A name that is too long, or would equal another name,
 * ends with a hash.
 */
export function shownNames(
  names: readonly string[],
  hash: (text: string) => string,
): Map<string, string> {
  const wanted = new Map<string, number>()
  for (const name of names) wanted.set(toolName(name), (wanted.get(toolName(name)) ?? 0) + 1)
  return new Map(
    names.map((name) => [
      name,
      SAFE.test(name) || (name.length <= 64 && wanted.get(toolName(name)) === 1)
        ? toolName(name)
        : `${toolName(name).slice(0, 55)}_${hash(name).slice(0, 8)}`,
    ]),
  )
}

/**
 * Returns the API row to which a call of a catalog entry maps, with the input and the duration of
 * the call. Returns undefined for an entry that only agents can call.
 */
function operationOf(
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

/**
 * Returns the schema with type `object`, because arguments and structured results are always
 * objects. A schema of another type is replaced by `{ type: 'object' }`, which accepts any object.
 */
const objectOf = (schema: JsonObject | undefined): McpTool['inputSchema'] =>
  schema && (schema['type'] === undefined || schema['type'] === 'object')
    ? { ...schema, type: 'object' }
    : { type: 'object' }
/**
 * Describes an entry as a tool. A built-in action is idempotent only within one job. Each call to
 * its tool is a new job, so the tool has no `idempotentHint`.
 */
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
/**
 * Returns whether an entry is offered as a tool. It must be ready, or be served by workers, which
 * may connect later. Actions of environments are not offered, because a tool call specifies no
 * environment.
 */
const usable = ({ name, readiness, endpoint_kind }: CatalogEntry): boolean =>
  !isEnvironmentAction(name) && (readiness === 'ready' || endpoint_kind === 'worker')

/**
 * Returns all tools of a project, sorted by their catalog names. The permissions of callers are not
 * checked.
 */
export async function allTools(
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
    const meaning = operationOf(entry, brand)
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
/** Returns the refusal if the caller may not call the tool, otherwise undefined. */
export const refuseTool = (
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
/**
 * Finds a tool by the name that clients see, or by its name in the catalog. Returns undefined when
 * there is no such tool.
 */
export const findTool = (offered: readonly Offered[], name: string): Offered | undefined =>
  offered.find(({ tool }) => tool.name === name) ?? offered.find((one) => one.name === name)
