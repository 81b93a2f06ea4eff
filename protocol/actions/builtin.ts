/**
 * Actions that the service itself executes: access to the memory of an agent and to the rows of
 * tables, and starting and reading runs. The names of these actions begin with the brand, which is
 * reserved for them. A published workflow is also callable, as `workflow.<handle>`. Toolkits grant
 * built-in actions like any other action. Steps can call only the built-in actions on tables. This
 * file only describes the actions. Executors implement them.
 */
import { type Groups, type Named, selects } from '../agents/selectors.ts'
import type { JsonObject } from '../common.ts'
import { getOwn } from '../lookup.ts'
import { memoryLimits } from '../memory/schema.ts'
import { publishedHandle } from '../naming.ts'
import type { Selector } from '../toolkits/schema.ts'
import { object, text } from './parameters.ts'
import { type TableAction, tableActions } from './table-actions.ts'

export interface Builtin extends Omit<TableAction, 'permission'> {
  readonly name: string
}

const key = text(memoryLimits.key, {
  description: 'Letters, digits, dots, colons, hyphens and underscores',
})

const actions = {
  'memory.remember': {
    title: 'Remember',
    description:
      'Store an entry in your memory under a key, for later conversations. An existing entry ' +
      'with this key is replaced.',
    input_schema: object(
      {
        key,
        content: text(memoryLimits.content),
        summary: text(memoryLimits.summary, {
          description: 'One line that is always shown to you',
        }),
        kind: { type: 'string', enum: ['fact', 'preference', 'episode', 'summary'] },
        importance: { type: 'integer', minimum: 0, maximum: 100 },
        pinned: { type: 'boolean' },
      },
      ['key', 'content'],
    ),
    annotations: { idempotent: true },
  },
  'memory.recall': {
    title: 'Recall',
    description:
      'Read entries of your memory: those that contain all words of the query, or all entries.',
    input_schema: object({
      query: { type: 'string', maxLength: 256 },
      limit: { type: 'integer', minimum: 1, maximum: 50 },
    }),
    annotations: { idempotent: true, read_only: true },
  },
  'memory.forget': {
    title: 'Forget',
    description: 'Delete the entry with a key from your memory.',
    input_schema: object({ key }, ['key']),
    annotations: { idempotent: true },
  },
  'run.start': {
    title: 'Start a run',
    description: 'Start a run of a workflow without waiting for its end.',
    input_schema: object(
      {
        workflow: text(200, { description: 'Handle or id of the workflow' }),
        input: { type: 'object' },
      },
      ['workflow'],
    ),
    annotations: { idempotent: true },
  },
  'run.get': {
    title: 'Get a run',
    description: 'Get the status and the output of a run.',
    input_schema: object({ run_id: text(100) }, ['run_id']),
    annotations: { idempotent: true, read_only: true },
  },
  ...tableActions,
} satisfies Readonly<Record<string, Omit<Builtin, 'name'>>>
/** The name of a built-in action without the brand. */
export type BuiltinName = keyof typeof actions
const isBuiltinName = (name: string): name is BuiltinName => Object.hasOwn(actions, name)

/**
 * Returns all built-in actions.
 * @param brand lower-case brand.
 */
export const builtins = (brand: string): readonly Builtin[] =>
  Object.entries(actions).map(
    ([name, { title, description, input_schema, annotations }]): Builtin => ({
      name: `${brand}.${name}`,
      title,
      description,
      input_schema,
      annotations,
    }),
  )
/**
 * Returns the named groups of built-in actions: `<brand>.table.read` contains the actions that read
 * tables, and `<brand>.table.write` contains the actions that change rows.
 * @param brand lower-case brand.
 */
export function builtinGroups(brand: string): Groups {
  const members = (reads: boolean): readonly string[] =>
    Object.entries<TableAction>(tableActions)
      .filter(([, { annotations }]) => (annotations.read_only === true) === reads)
      .map(([name]) => `${brand}.${name}`)
  return { [`${brand}.table.read`]: members(true), [`${brand}.table.write`]: members(false) }
}
/**
 * Returns the schema of the parameters of a built-in action.
 * @param name name without the brand.
 */
export const inputSchemaOf = (name: BuiltinName): JsonObject => actions[name].input_schema
/**
 * Returns the permission of the endpoint that is equivalent to a built-in action on tables;
 * undefined for other actions. The author of a definition needs this permission for each such
 * action that the definition calls. A definition therefore grants no rights that its author lacks.
 * @param brand lower-case brand.
 */
export const endpointPermission = (brand: string, name: string): string | undefined =>
  getOwn<TableAction>(
    tableActions,
    name.startsWith(`${brand}.`) ? name.slice(brand.length + 1) : '',
  )?.permission
/**
 * Whether an action is a built-in action on tables. These are the only built-in actions that steps
 * can call.
 * @param brand lower-case brand.
 */
export const isTableAction = (brand: string, name: string): boolean =>
  endpointPermission(brand, name) !== undefined
/**
 * Returns the endpoint permissions (`endpointPermission`) of the built-in actions that a selector
 * matches.
 */
export function endpointPermissions(brand: string, selector: Selector): readonly string[] {
  const groups = builtinGroups(brand)
  const matched = Object.entries<TableAction>(tableActions).filter(([name]) => {
    const action: Named = { name: `${brand}.${name}`, source: 'platform' }
    return selects(selector, action, groups)
  })
  return [...new Set(matched.map(([, { permission }]) => permission))]
}
/**
 * Resolves the name of an action that the service executes itself. Returns the name of the built-in
 * action without the brand, or the handle of the published workflow as `workflow`. Returns
 * undefined for all other names.
 * @param brand lower-case brand.
 */
export function builtinOf(
  brand: string,
  name: string,
): BuiltinName | { readonly workflow: string } | undefined {
  const workflow = publishedHandle(name)
  if (workflow !== undefined) return { workflow }
  if (!name.startsWith(`${brand}.`)) return undefined
  const bare = name.slice(brand.length + 1)
  return isBuiltinName(bare) ? bare : undefined
}
