/** What a project knows: its workflows with their latest specs, its keys and its principals. Deleted records are gone from here; journal and views keep their history. */
import type { PrincipalRecord } from '../../protocol/api/access.ts'
import type { Workflow } from '../../protocol/api/workflows.ts'
import type { Definition, ProjectDirectory } from '../../protocol/directory.ts'
import { own } from '../../protocol/lookup.ts'
import type { Spec } from '../../protocol/spec.ts'
import { byHash, type Keys } from '../configuration.ts'

/** A workflow without its spec, and the spec of its latest version. */
interface KeptWorkflow {
  readonly workflow: Workflow
  readonly spec: Spec
}
export interface ProjectState {
  workflows: Record<string, KeptWorkflow>
  keys: Keys
  principals: Record<string, PrincipalRecord>
  /** The organization that holds the claim on a workflow's handle, by workflow id. */
  claims: Record<string, string>
  /** Workflow ids that must never be created, with the time of that promise in Unix milliseconds (H2 of protocol/configuration.ts). */
  unused: Record<string, number>
}
export interface ProjectOptions {
  /** Header brand; its lower-case form prefixes reserved tags. */
  readonly brand: string
}

/** A project without any configuration. */
export const bare = (): ProjectState => ({ workflows: {}, keys: {}, principals: {}, claims: {}, unused: {} })

/** What gateways keep of a project; its state does not hold its id, so the question does. */
export const directoryOf = ({ keys, principals, workflows }: ProjectState, { id }: { readonly id: string }): ProjectDirectory => ({
  id, keys: byHash(keys), principals: { ...principals },
  workflows: Object.fromEntries(Object.values(workflows).map(({ workflow }) => [workflow.id, { handle: workflow.handle, latest_version: workflow.latest_version }])),
})

/** The latest version of a workflow, or undefined. */
export function definitionOf({ workflows }: ProjectState, { id }: { readonly id: string }): Definition | undefined {
  const kept = own(workflows, id)
  return kept && { id, version: kept.workflow.latest_version, spec: kept.spec }
}
