/** A project: the one writer of its workflows, keys and principals. */
import type { KeyEvent, KeyMaterial, PrincipalEvent } from '../../protocol/api/access.ts'
import type { WorkflowEvent } from '../../protocol/api/workflows.ts'
import type { Api } from '../../protocol/api.ts'
import type { HoldEvent, ProjectCommands, Reserved } from '../../protocol/configuration.ts'
import { own } from '../../protocol/lookup.ts'
import { patch } from '../../protocol/patch.ts'
import type { Actor } from '../actor.ts'
import { evolveKeys, touch } from '../configuration.ts'
import { createKey, revokeKey } from './keys.ts'
import { createPrincipal, deletePrincipal, updatePrincipal } from './principals.ts'
import { bare, definitionOf, directoryOf, type ProjectOptions, type ProjectState } from './state.ts'
import { createWorkflow, deleteWorkflow, settleHandle, updateWorkflow } from './workflows.ts'

type ProjectEvent = WorkflowEvent | KeyEvent | PrincipalEvent | HoldEvent
/** What the edge adds to rows. */
type Extra = { 'key.create': KeyMaterial; 'workflow.create': { readonly reserved: Reserved } }

/** A promise never to make a workflow id is kept for a day: no command is delivered later than that. */
const KEEP_UNUSED = 86_400_000

/** The actor of a project. */
export const projectActor = (options: ProjectOptions): Actor<ProjectState, ProjectEvent, Api, 'project', ProjectCommands, Extra> => ({
  kind: 'project',
  initial: bare,
  decide: {
    'workflow.create': (state, input, cause) => createWorkflow(options, state, input, cause),
    'workflow.update': (state, input, cause) => updateWorkflow(options, state, input, cause),
    'workflow.delete': deleteWorkflow,
    'key.create': (state, input, cause) => createKey(options, state, input, cause),
    'key.revoke': revokeKey,
    'principal.create': (state, input, cause) => createPrincipal(options, state, input, cause),
    'principal.update': (state, input, cause) => updatePrincipal(options, state, input, cause),
    'principal.delete': deletePrincipal,
    'key.touch': touch,
    'handle.settle': settleHandle,
  },
  evolve: {
    'workflow.created': (state, { id, workflow, spec }) => {
      state.workflows[id] = { workflow, spec }
      return state
    },
    'workflow.updated': (state, { id, workflow, spec }) => {
      const kept = own(state.workflows, id)
      if (kept) state.workflows[id] = { ...kept, workflow: patch(kept.workflow, workflow), ...(spec && { spec }) }
      return state
    },
    'workflow.deleted': (state, { id }) => {
      delete state.workflows[id]
      return state
    },
    ...evolveKeys,
    'principal.created': (state, { id, principal }) => {
      state.principals[id] = principal
      return state
    },
    'principal.updated': (state, { id, principal: change }) => {
      const principal = own(state.principals, id)
      if (principal) state.principals[id] = patch(principal, change)
      return state
    },
    'principal.deleted': (state, { id }) => {
      delete state.principals[id]
      return state
    },
    'handle.held': (state, { id, organization }) => {
      state.claims[id] = organization
      return state
    },
    'handle.freed': (state, { id, unused }, at) => {
      delete state.claims[id]
      for (const [old, since] of Object.entries(state.unused)) if (since < at - KEEP_UNUSED) delete state.unused[old]
      if (unused) state.unused[id] = at
      return state
    },
  },
  react: {
    'handle.freed': ({ id, organization }) => [{ tell: { to: { kind: 'organization', id: organization, project: organization }, name: 'handle.release', input: { id } } }],
  },
  ask: { directory: directoryOf, definition: definitionOf },
})
