/** The workflows that a definition names in its `loop` steps, looked up in this gateway's directories. */
import type { Definition } from '../protocol/directory.ts'
import { isRefusal, refuseFields, type Refusal } from '../protocol/errors.ts'
import { own } from '../protocol/lookup.ts'
import { workflowsNamed, type Spec } from '../protocol/spec.ts'
import type { Edge } from './call.ts'

/** By the name that the steps use; absent when they name none. */
export interface Children {
  readonly definitions?: Readonly<Record<string, Definition>>
}
/** Workflows that one run and its children may name. */
const MAX_NAMED = 50
/** The workflows that the `loop` steps of a spec name, with those that theirs name: as they are now, for the whole family of runs. A name that is not known yet is the step's own fault. */
export async function childrenOf(
  { directory }: Pick<Edge, 'directory'>,
  project: string,
  spec: Spec,
): Promise<Children | Refusal> {
  const todo = workflowsNamed(spec)
  if (todo.length === 0) return {}
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const definitions: Record<string, Definition> = {}
  for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
    if (Object.hasOwn(definitions, name)) continue
    const id = own(known.workflows, name)
      ? name
      : Object.entries(known.workflows).find(([, { handle }]) => handle === name)?.[0]
    const definition = id === undefined ? undefined : await directory.definition(project, id)
    if (definition === undefined) continue
    if (isRefusal(definition)) return definition
    definitions[name] = definition
    if (Object.keys(definitions).length > MAX_NAMED)
      return refuseFields({
        field: 'spec',
        message: `names more than ${MAX_NAMED} workflows, theirs included`,
      })
    todo.push(...workflowsNamed(definition.spec))
  }
  return { definitions }
}
