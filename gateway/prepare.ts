/**
 * The preparations of command rows. The preparation of a row is a function that looks up and
 * generates the values that its command needs before it is sent. Without a preparation, the input
 * is sent unchanged. This file contains the table of all preparations, and the short ones. Most
 * others are in `commands/`, `sessions/` and `auth/`. `command.ts` sends the command.
 */

import type { Definition } from '../protocol/access/directory.ts'
import type { Holds } from '../protocol/access/rows.ts'
import { api } from '../protocol/api.ts'
import { timestamp } from '../protocol/common.ts'
import type { Row } from '../protocol/contract.ts'
import type { Origin } from '../protocol/entry.ts'
import {
  isRefusal,
  isServiceFault,
  type Refusal,
  refuse,
  refuseFields,
} from '../protocol/errors.ts'
import type { CreateInteraction } from '../protocol/interactions/rows.ts'
import { getOwn } from '../protocol/lookup.ts'
import type { Reserved } from '../protocol/projects/configuration.ts'
import { agentsNamed } from '../protocol/rules/workflow-check/agents.ts'
import { type Spec, workflowsNamed } from '../protocol/workflows/spec.ts'
import { consolePreparations } from './auth/console/rows.ts'
import { devicePreparations } from './auth/device/answer.ts'
import { newKey } from './auth/keys.ts'
import { checkPeople, checkScope, rolesOf } from './auth/people.ts'
import { blueprintPreparations } from './blueprints/lifecycle.ts'
import { type Call, type Edge, newId, operationOf } from './call.ts'
import { actionPreparations } from './commands/actions.ts'
import { refuseActions } from './commands/actions-named.ts'
import { refuseUnknownAgents } from './commands/agents-named.ts'
import { artifactPreparations } from './commands/artifacts/remove.ts'
import { channelPreparations } from './commands/channels.ts'
import type { Revise } from './commands/decide.ts'
import { definitionPreparations } from './commands/definitions.ts'
import { environmentPreparations } from './commands/environments/prepare.ts'
import { refuseProvider } from './commands/environments/providers.ts'
import { eventPreparations } from './commands/events.ts'
import { refuseUnknownLoops } from './commands/loops/loops-named.ts'
import { loopPreparations } from './commands/loops.ts'
import { memoryPreparations } from './commands/memory.ts'
import { preferencePreparations } from './commands/preferences.ts'
import { hostPreparations } from './commands/repositories/hosts.ts'
import { resolverPreparations } from './commands/resolver/configure.ts'
import { gatePreparations } from './commands/runs/gate.ts'
import { recoveryPreparations } from './commands/runs/recovery.ts'
import { refuseCallback, sealedCallback } from './commands/seal-url.ts'
import { tableNamePreparations } from './commands/tables/names.ts'
import { rowPreparations } from './commands/tables/rows.ts'
import { webhookPreparations } from './commands/webhooks.ts'
import { childrenOf } from './commands/workflows/children.ts'
import { handleOf } from './commands/workflows/handle.ts'
import { type Identity, unlessRepeated } from './http/idempotency.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import { signLinks } from './pages/answer/links.ts'
import type { Outcome } from './ports.ts'
import { sessionPreparations } from './sessions/prepare.ts'

/**
 * The result of a preparation. `input` is added to the command's input, and `reply` to the
 * response. The other fields determine which actor receives the command and how the call is
 * answered.
 */
export interface Prepared {
  readonly input?: Readonly<Record<string, unknown>>
  readonly reply?: Readonly<Record<string, unknown>>
  /** Set when the body is not sent with the command, because the actor needs only `input`. */
  readonly omitsBody?: true
  /** Id of the actor that decides, if the row does not determine it. */
  readonly id?: string
  /** Set when the actor is new, because its id was generated for this request. */
  readonly born?: true
  readonly revise?: Revise
  /** Computes the response, which replaces the actor's reply. */
  readonly answer?: (reply: unknown) => MaybePromise<unknown>
  /** Runs after the command has been decided or refused, and before the call is answered. */
  readonly after?: (outcome: Outcome) => Promise<void>
  /**
   * The reason why the command cannot be decided. The call is refused with it, unless the actor
   * remembers the answer to an earlier request under the same idempotency key.
   */
  readonly unlessRepeated?: Refusal
  /** The response to a call for which no command is sent. */
  readonly done?: unknown
}
const NOTHING: Prepared = {}
/**
 * The preparation of a row. `identity` determines the generated values, so that a repeat uses the
 * same values.
 */
export type Prepare = (
  edge: Edge,
  call: Call,
  identity: Identity,
  origin: Origin,
) => MaybePromise<Prepared | Refusal>

const definitionFor = async (
  edge: Edge,
  { project }: Call,
  name: unknown,
  field: string,
): Promise<Prepared | Refusal> => {
  if (name === undefined || !project) return {}
  const found = await workflowNamed(edge, project.id, String(name), field)
  return isRefusal(found) ? found : { input: { ...found } }
}
/**
 * Prepares the start of a run of the workflow in the path. A `definition_id` in the body must name
 * the same workflow, by its id or handle.
 */
async function workflowOfPath(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const named = call.slots['id']
  const found = await definitionFor(edge, call, named, 'id')
  const given = call.body['definition_id']
  if (isRefusal(found) || given === undefined || given === named) return found
  const other = await definitionFor(edge, call, given, 'definition_id')
  if (isRefusal(other) && other.refused !== 'not_found') return other
  const idOf = ({ input }: Prepared) => (input?.['definition'] as Definition | undefined)?.id
  return !isRefusal(other) && idOf(other) === idOf(found)
    ? found
    : refuseFields({
        field: 'definition_id',
        message: 'must be the workflow of the path',
        expected: named,
        actual: given,
      })
}
/**
 * Returns the latest version of the workflow with this id or handle, and the workflows that its
 * steps refer to. Refused with `not_found` when there is no such workflow.
 * @param field name of the request field that contains the id or handle, for the refusal.
 */
export async function workflowNamed(
  { directory }: Pick<Edge, 'directory'>,
  project: string,
  text: string,
  field: string,
): Promise<
  | { readonly definition: Definition; readonly definitions?: Readonly<Record<string, Definition>> }
  | Refusal
> {
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const id = getOwn(known.workflows, text)
    ? text
    : Object.entries(known.workflows).find(([, { handle }]) => handle === text)?.[0]
  const definition = id === undefined ? undefined : await directory.definition(project, id)
  if (definition === undefined)
    return refuse('not_found', { [field]: text }, 'There is no such workflow.')
  if (isRefusal(definition)) return definition
  const children = await childrenOf({ directory }, project, definition.spec)
  return isRefusal(children) ? children : { definition, ...children }
}

/**
 * Prepares the start of a run with an inline spec: checks the agents, actions and provider in the
 * spec, and loads the workflows that it refers to.
 */
const inlineRun: Prepare = (edge, call, identity, origin) => {
  const { project, body } = call
  const spec = body['spec'] as Spec | undefined
  if (!project || !spec || !needsCheck(edge, call, spec)) return NOTHING
  return andThen(checkDefinition(edge, call, identity, origin), (checked) =>
    isRefusal(checked)
      ? checked
      : childrenOf(edge, project.id, spec).then((found) =>
          isRefusal(found) ? found : { input: { ...found } },
        ),
  )
}
/** Whether a spec contains anything that `inlineRun` refuses or loads. */
const needsCheck = (edge: Edge, { caller }: Call, spec: Spec): boolean =>
  workflowsNamed(spec).length > 0 ||
  agentsNamed(spec.steps, '').length > 0 ||
  refuseActions(edge, caller, spec) !== undefined ||
  refuseProvider(edge.world.settings, spec) !== undefined
/**
 * Refuses a definition with an unknown agent or provider, or with an action that its steps or the
 * caller may not call.
 */
const checkDefinition: Prepare = async (edge, { project, body, caller }) => {
  const { steps, cleanup, defaults } = (body['spec'] ?? {}) as Partial<Spec>
  const refused =
    refuseActions(edge, caller, { ...(steps && { steps }), ...(cleanup && { cleanup }) }, 'spec') ??
    refuseProvider(edge.world.settings, { ...(defaults && { defaults }) }, 'spec')
  if (refused) return refused
  if (!project || !steps) return NOTHING
  return (await refuseUnknownAgents(edge, project.id, { steps }, 'spec')) ?? NOTHING
}

/** Checks a definition that is saved as `checkDefinition` does, and the loops that it starts. */
const checkSaved: Prepare = async (edge, call, identity, origin) => {
  const checked = await checkDefinition(edge, call, identity, origin)
  const { project, body } = call
  if (!project || isRefusal(checked)) return checked
  return (
    (await refuseUnknownLoops(edge, project.id, (body['spec'] ?? {}) as Partial<Spec>, 'spec')) ??
    checked
  )
}

/**
 * Wraps a preparation so that a repeat under an idempotency key gets the first answer, even if a
 * record to which the request refers has disappeared since. The reply of the row's actor must be
 * complete, because no other part of the preparation applies.
 */
const orFirstAnswer =
  (prepared: Prepare): Prepare =>
  (edge, call, identity, origin) =>
    andThen(prepared(edge, call, identity, origin), (found) =>
      isRefusal(found) ? unlessRepeated(found, identity) : found,
    )

/**
 * Wraps a preparation so that a repeat under an idempotency key returns the run of the first
 * request, even if the workflow has since been deleted. The run is looked up only when the
 * preparation refuses for a reason that is not temporary.
 */
const orRunOfRepeat =
  (prepared: Prepare): Prepare =>
  (edge, call, identity, origin) =>
    andThen(prepared(edge, call, identity, origin), (found) =>
      isRefusal(found) && !isServiceFault(found) ? runOfRepeat(edge, call, identity, found) : found,
    )
async function runOfRepeat(
  { world }: Edge,
  { project }: Call,
  { seed }: Identity,
  otherwise: Refusal,
): Promise<Prepared | Refusal> {
  if (!project || seed === undefined) return otherwise
  const run = await world.ask(
    { project: project.id, kind: 'run', id: world.id('run', seed) },
    'get',
    {},
  )
  return isRefusal(run) ? run : run ? NOTHING : otherwise
}

/**
 * Generates the id of a new workflow, and reserves its handle at the organization. If the request
 * is repeated, the handle is reserved again. An unused reservation expires.
 */
async function reserveHandle(edge: Edge, call: Call, origin: Origin): Promise<Prepared | Refusal> {
  const { world } = edge
  const { project, body } = call
  if (!project) return {}
  const handle = handleOf(world, body)
  const organization = world.organization()
  const reserved: Reserved = { id: newId(edge, call, 'workflow'), handle, organization }
  const outcome = await world.command({
    project: organization,
    kind: 'organization',
    id: organization,
    command_id: `handle.reserve:${reserved.id}`,
    name: 'handle.reserve',
    input: { id: reserved.id, handle, project: project.id },
    origin,
  })
  return isRefusal(outcome) ? outcome : { input: { reserved } }
}

/**
 * Returns the caller's permissions as input for a command that grants permissions. The actor
 * refuses to grant a permission that the caller lacks.
 */
const heldPermissions = ({ caller }: Call): Holds => ({ holds: [...caller.permissions] })
const addHeldPermissions: Prepare = (_, call) => ({ input: { ...heldPermissions(call) } })

const makeKey = (
  { world }: Edge,
  call: Call,
  project: string | undefined,
  { seed }: Identity,
  kind?: 'token',
): Prepared => {
  const { key, hash, key_prefix } = newKey(world, project, seed, kind)
  return {
    input: {
      hash,
      key_prefix,
      ...(seed !== undefined && { derived: true }),
      ...heldPermissions(call),
    },
    reply: { key },
  }
}

/**
 * Prepares an interaction: checks its targets, its reviewers, its run and its callback URL, and
 * seals the URL.
 */
async function askPeople(edge: Edge, { project, body }: Call): Promise<Prepared | Refusal> {
  if (!project) return {}
  const asked = body as CreateInteraction
  const refused =
    (await checkPeople(edge, project.id, asked)) ?? (await refuseCallback(edge.world, asked))
  return refused ?? { input: sealedCallback(edge.world, project.id, asked) }
}
const executesOf = ({ permissions }: Call['caller']): readonly string[] =>
  [...permissions].filter((permission) => permission.startsWith('actions.execute.'))
/**
 * Prepares an answer or a review. Adds the caller's roles, which may be targets of the interaction,
 * and the actions that the caller may execute. Also checks the scope role of the caller's key.
 */
async function answerAs(edge: Edge, { project, caller }: Call): Promise<Prepared | Refusal> {
  const executes = executesOf(caller)
  if (!project) return { input: { executes, roles: [] } }
  const roles = await rolesOf(edge, project.id, caller)
  if (isRefusal(roles)) return roles
  const refused = await checkScope(edge, project.id, caller)
  return refused ?? { input: { executes, ...roles } }
}

const preparations: Readonly<Record<string, Prepare>> = {
  'run.start': orRunOfRepeat((edge, call, identity, origin) =>
    call.body['definition_id'] === undefined
      ? inlineRun(edge, call, identity, origin)
      : definitionFor(edge, call, call.body['definition_id'], 'definition_id'),
  ),
  'workflow.run': orRunOfRepeat(workflowOfPath),
  'workflow.create': orFirstAnswer(async (edge, call, identity, origin) => {
    const checked = await checkSaved(edge, call, identity, origin)
    return isRefusal(checked) ? checked : reserveHandle(edge, call, origin)
  }),
  'workflow.update': orFirstAnswer(checkSaved),
  'interaction.create': orFirstAnswer(askPeople),
  'interaction.respond': answerAs,
  'interaction.review': answerAs,
  'interaction.link': signLinks,
  'key.create': (edge, call, identity) => makeKey(edge, call, call.project?.id, identity),
  'key.create_organization': (edge, call, identity) => makeKey(edge, call, undefined, identity),
  'token.create': (edge, call, identity) =>
    makeKey(edge, call, call.project?.id, identity, 'token'),
  'me.create_token': (edge, call, identity) => {
    const made = makeKey(edge, call, call.project?.id, identity, 'token')
    // The token must not outlive the console session. The project's actor cannot read the session,
    // so the end of the session is added to the input.
    const until =
      call.caller.credential.type === 'console_session'
        ? edge.authentication.expiryOf(call.caller)
        : undefined
    return until === undefined
      ? made
      : { ...made, input: { ...made.input, until: timestamp(until) } }
  },
  ...Object.fromEntries(
    Object.entries(api as Readonly<Record<string, Row>>).flatMap(([name, { shape }]) =>
      shape.grantsPermissions ? [[name, addHeldPermissions]] : [],
    ),
  ),
  ...devicePreparations,
  ...consolePreparations,
  ...preferencePreparations,
  ...channelPreparations,
  ...loopPreparations,
  ...gatePreparations,
  ...recoveryPreparations,
  ...eventPreparations,
  ...sessionPreparations,
  ...definitionPreparations,
  ...memoryPreparations,
  ...actionPreparations,
  ...webhookPreparations,
  ...hostPreparations,
  ...resolverPreparations,
  ...tableNamePreparations,
  ...rowPreparations,
  ...artifactPreparations,
  ...environmentPreparations,
  ...blueprintPreparations,
}

/** Runs the preparation of the call's operation. Without one, returns an empty preparation. */
export const prepare: Prepare = (edge, call, identity, origin) =>
  getOwn(preparations, operationOf(call))?.(edge, call, identity, origin) ?? NOTHING
