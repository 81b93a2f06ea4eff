/** Looks up the workflows that the steps of a definition refer to, in the cached directories. */
import type { Definition, ProjectDirectory } from '../../../protocol/access/directory.ts'
import { isRefusal, type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { publishedHandle } from '../../../protocol/naming.ts'
import { type Spec, workflowsNamed } from '../../../protocol/workflows/spec.ts'
import type { Edge } from '../../call.ts'

/** The workflows that the steps of a run refer to. */
export interface Children {
  /** Definitions by the names that the steps use; absent when the steps refer to no workflow. */
  readonly definitions?: Readonly<Record<string, Definition>>
}
/** Maximum number of workflows that one run and its children may refer to. */
const MAX_NAMED = 50
/**
 * Returns the id of the workflow that a step refers to by id, by handle, or, for a published
 * workflow, by the name of its action. Returns undefined when no workflow matches.
 */
function workflowId(known: ProjectDirectory, name: string): string | undefined {
  const handle = publishedHandle(name)
  if (handle === undefined && getOwn(known.workflows, name)) return name
  return Object.entries(known.workflows).find(
    ([, one]) =>
      one.handle === (handle ?? name) && (handle === undefined || one.published_as_tool !== false),
  )?.[0]
}

/**
 * Returns the latest versions of the workflows to which the steps of a spec refer, directly or
 * through other workflows. A run and all of its children use these versions. An unknown name is
 * omitted, and its step fails when it is executed. More than `MAX_NAMED` workflows are refused.
 */
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
    const id = workflowId(known, name)
    const definition = id === undefined ? undefined : await directory.definition(project, id)
    if (definition === undefined) continue
    if (isRefusal(definition)) return definition
    definitions[name] = definition
    if (Object.keys(definitions).length > MAX_NAMED)
      return refuseFields({
        field: 'spec',
        message: `refers to more than ${MAX_NAMED} workflows, including nested ones`,
      })
    todo.push(...workflowsNamed(definition.spec))
  }
  return { definitions }
}
