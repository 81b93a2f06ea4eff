/**
 * Toolkits: named sets of action selectors, which are assigned to agents. This file contains their
 * schemas, limits and events; `agents/selectors.ts` matches selectors with actions. A selector may
 * match actions that are defined later.
 */
import { type Static, Type } from 'typebox'
import { Closed, Tags, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'

/**
 * Limits of toolkits. `selectors`: number of selectors in one toolkit. `toolkits`: number of
 * toolkits of one project. `assigned`: number of toolkits of one agent. The others are lengths in
 * characters.
 */
export const toolkitLimits = {
  name: 80,
  description: 1000,
  selector: 256,
  selectors: 200,
  toolkits: 500,
  assigned: 64,
} as const

const text = { minLength: 1, maxLength: toolkitLimits.selector, pattern: '^\\S+$' }
export const Selector = Closed({
  selector_type: Type.Enum(['exact', 'group', 'platform', 'custom', 'wildcard']),
  selector: Type.String(text),
})
/**
 * A rule that matches actions:
 * - `exact`: the action with this name.
 * - `group`: the actions of a named group, or all actions whose names begin with this text and a
 *   dot.
 * - `platform`: a pattern for the actions of the service.
 * - `custom`: a pattern for the actions of the project and the organization.
 * - `wildcard`: a pattern for all actions.
 */
export type Selector = Static<typeof Selector>
const Selectors = Type.Array(Selector, { maxItems: toolkitLimits.selectors })
const { selector_type, selector } = Selector.properties
const Grant = Closed({
  selector_type: Type.Optional(selector_type),
  selector: Type.Optional(selector),
  action_name: Type.Optional(
    Type.String({ ...text, description: 'Deprecated; same as a selector of type exact' }),
  ),
})
type Grant = Static<typeof Grant>
/** Returns the faults of a request's selectors that the schema cannot detect. */
export const checkGrants = ({
  actions = [],
}: {
  readonly actions?: readonly Grant[]
}): FieldError[] =>
  actions.flatMap((grant, index) => {
    const missing = (['selector_type', 'selector'] as const).filter(
      (name) => grant[name] === undefined,
    )
    if (grant.action_name === undefined)
      return missing.map((name) => ({ field: `actions[${index}].${name}`, message: 'is required' }))
    return missing.length < 2
      ? [
          {
            field: `actions[${index}].action_name`,
            message: 'cannot be given together with selector_type or selector',
          },
        ]
      : []
  })
/** Converts a selector of a request to its stored form. */
export const selectorOf = ({
  selector_type = 'exact',
  selector = '',
  action_name,
}: Grant): Selector => ({ selector_type, selector: action_name ?? selector })

export const Toolkit = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  source: Type.Enum(['system', 'project']),
  tags: Type.Optional(Tags),
  actions: Selectors,
  created_by: Type.Optional(Type.String()),
  updated_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Toolkit = Static<typeof Toolkit>
/** The body of a request that creates or replaces a toolkit. */
export const ToolkitBody = Closed({
  name: Type.String({ minLength: 1, maxLength: toolkitLimits.name }),
  description: Type.Optional(Type.String({ maxLength: toolkitLimits.description })),
  actions: Type.Optional(Type.Array(Grant, { maxItems: toolkitLimits.selectors })),
  tags: Type.Optional(Tags),
})

export type ToolkitEvent =
  | (Event & { readonly type: 'toolkit.created'; readonly id: string; readonly toolkit: Toolkit })
  | (Event & {
      readonly type: 'toolkit.updated'
      readonly id: string
      readonly toolkit: Patch<Toolkit>
      readonly changes: Changes
    })
  /** The toolkit is deleted together with its assignments to agents. */
  | (Event & { readonly type: 'toolkit.deleted'; readonly id: string; readonly name: string })

/**
 * Returns the toolkits that the service defines for every project.
 * @param brand lower-case brand.
 * @param since creation time of the project, as a timestamp.
 */
export const systemToolkits = (brand: string, since: string): Toolkit[] => [
  {
    id: 'kit_system_all',
    name: 'Everything',
    description: 'All actions of the project, of the organization and of the service.',
    source: 'system',
    actions: [{ selector_type: 'wildcard', selector: '*' }],
    created_at: since,
    updated_at: since,
  },
  {
    id: 'kit_system_memory',
    name: 'Memory',
    description: "Actions that store, read and delete entries of the agent's own memory.",
    source: 'system',
    actions: [{ selector_type: 'group', selector: `${brand}.memory` }],
    created_at: since,
    updated_at: since,
  },
]
/** Whether an id belongs to a toolkit that the service defines. */
export const isSystemToolkit = (id: string): boolean =>
  id === 'kit_system_all' || id === 'kit_system_memory'
