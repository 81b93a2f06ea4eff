/**
 * All queries that a view answers, by name: the query rows of the API that need history, and
 * internal queries of gateways.
 */
import { exchangeList } from './tables/channels/exchanges.ts'
import { api, type RowName } from '../protocol/api.ts'
import type { OrganizationAction } from '../protocol/actions/organization-rows.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { ViewQuestions } from '../protocol/view-questions.ts'
import type { Row } from '../protocol/contract.ts'
import { actionLog } from './tables/actions/actions.ts'
import { agentGet, agentHome, agentList, type AgentFilters } from './tables/agents/agents.ts'
import { auditList, type AuditFilters } from './tables/access/audit.ts'
import { channelEventPage, channelEvents } from './tables/channels/events.ts'
import {
  access,
  agentsOf,
  channelGet,
  channelList,
  channelRow,
  channelsOf,
  memberList,
  type WithViewer,
} from './tables/channels/channels.ts'
import { definitionGet, definitionList, skillUsage } from './tables/agents/toolkits.ts'
import { actionGet, actionList, actionsOf, callable } from './tables/actions/definitions.ts'
import { feed } from './tables/runs/feed.ts'
import { invocationList, type InvocationFilters } from './tables/actions/invocations.ts'
import { jobsById, leases, runJobs } from './tables/jobs/jobs.ts'
import { loopGet, loopList, loopNamed } from './tables/loops/loops.ts'
import {
  interactionGet,
  interactionList,
  type InteractionFilters,
} from './tables/interactions/interactions.ts'
import {
  memoryChanges,
  memoryEntries,
  memoryGet,
  type MemoryFilters,
} from './tables/memory/memory.ts'
import { search } from './tables/channels/message-search.ts'
import { messageFacts, messageGet, messageList } from './tables/channels/messages.ts'
import { wants, type Including, type Paging } from './page.ts'
import { runList, workflowRuns, type RunFilters } from './tables/runs/list.ts'
import { locate, missingRun, runDetail, runOfKey, runRow } from './tables/runs/runs.ts'
import {
  messagesOfSession,
  messagesOfTurn,
  nudgeGet,
  nudgeList,
  sessionAccess,
  sessionGet,
  sessionList,
  turnGet,
  turnList,
} from './tables/sessions/lists.ts'
import {
  eventGet,
  eventList,
  publishedKeys,
  type EventFilters,
} from './tables/events/source-events.ts'
import { stepsOf } from './tables/runs/steps.ts'
import type { Store } from './store.ts'
import { eventPage, timeline } from './tables/runs/timeline.ts'
import { waitingOfStep } from './tables/runs/waiting.ts'
import { liveRows, transcriptPage } from './tables/sessions/transcript.ts'
import { deliveryList, webhookGet, webhookList } from './tables/webhooks/webhooks.ts'
import { usageList, type UsageFilters } from './tables/usage/usage.ts'
import { watch, workerList, workerModels } from './tables/workers/workers.ts'
import { workflowGet, workflowList, workflowVersions } from './tables/workflows/workflows.ts'
import type { RunStep } from '../protocol/runs/schema.ts'

/** The context of a query. */
export interface QueryContext {
  readonly store: Store
  /** Number of the project, see `Store.findProject`. */
  readonly project: number
  /** The time of the query, in Unix milliseconds. */
  readonly now: number
  /** Milliseconds for which a lost worker is still listed. */
  readonly stale: number
  readonly organization: string
  /**
   * The cursor up to which the view has applied everything, and the cursor below which the journal
   * was trimmed.
   */
  readonly current: number
  readonly oldest: number
}
type OfRun = Paging & Including & { readonly id: string }
type Query<I> = (asked: QueryContext, input: I) => unknown
const define = <I>(query: Query<I>): Query<never> => query as Query<never>

function runSteps(
  { store, project, now }: QueryContext,
  input: OfRun,
): { items: RunStep[] } | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  if (!wants(input, 'waiting_on')) return { items: stepsOf(store, run) }
  const watching = watch(store, project, now)
  return {
    items: stepsOf(store, run).map((step) => {
      const waiting_on = waitingOfStep(step, jobsById(store, project), watching)
      return { ...step, ...(waiting_on && { waiting_on }) }
    }),
  }
}

const queries = {
  'run.list': define<RunFilters>(({ store, project }, input) => runList(store, project, input)),
  'run.get': define<OfRun>(({ store, project, now }, input) =>
    runDetail(store, project, input, watch(store, project, now)),
  ),
  'run.steps': define(runSteps),
  'run.jobs': define<Parameters<typeof runJobs>[2]>(({ store, project, now }, input) =>
    runJobs(store, project, input, watch(store, project, now)),
  ),
  'run.action_log': define<OfRun>(({ store, project }, input) => actionLog(store, project, input)),
  'run.events': define<{ id: string; after_sequence?: number; limit?: number }>(
    ({ store, project }, input) => eventPage(store, project, input),
  ),
  'workflow.list': define<Paging>(({ store, project }, input) =>
    workflowList(store, project, input),
  ),
  'workflow.get': define<OfRun>(({ store, project }, input) => workflowGet(store, project, input)),
  'workflow.versions': define<OfRun & { include_spec?: boolean }>(({ store, project }, input) =>
    workflowVersions(store, project, input),
  ),
  'workflow.runs': define<OfRun>(({ store, project }, input) =>
    workflowRuns(store, project, input),
  ),
  'interaction.list': define<InteractionFilters>(({ store, project }, input) =>
    interactionList(store, project, input),
  ),
  'interaction.get': define<OfRun>(({ store, project }, input) =>
    interactionGet(store, project, input),
  ),
  'catalog.worker_models': define(({ store, project, now }) =>
    workerModels(watch(store, project, now)),
  ),
  'worker.list': define(({ store, project, now, stale }) => workerList(store, project, now, stale)),
  'channel.list': define<Paging & WithViewer>(({ store, project }, input) =>
    channelList(store, project, input),
  ),
  'channel.get': define<OfRun & WithViewer>(({ store, project }, input) =>
    channelGet(store, project, input),
  ),
  'channel.members': define<OfRun & WithViewer>(({ store, project }, input) =>
    memberList(store, project, input),
  ),
  'channel.exchanges': define<OfRun & WithViewer & { agent_id?: string; status?: string }>(
    ({ store, project }, input) => exchangeList(store, project, input),
  ),
  'channel.messages': define<OfRun & WithViewer>(({ store, project }, input) =>
    messageList(store, project, input),
  ),
  'channel.message': define<WithViewer & { id: string; message_id: string }>(
    ({ store, project }, input) => messageGet(store, project, input),
  ),
  'channel.search': define<Paging & WithViewer & { q: string; channel_id?: string }>(
    ({ store, project }, input) => search(store, project, input),
  ),
  'channel.events': define<WithViewer & { id: string; since?: number; limit?: number }>(
    ({ store, project }, input) => channelEventPage(store, project, input),
  ),
  'event.list': define<EventFilters>(({ store, project }, input) =>
    eventList(store, project, input),
  ),
  'event.get': define<Parameters<typeof eventGet>[2]>(({ store, project }, input) =>
    eventGet(store, project, input),
  ),
  'loop.list': define<Paging & { status?: string; agent_id?: string }>(
    ({ store, project }, input) => loopList(store, project, input),
  ),
  'loop.get': define<OfRun>(({ store, project }, input) => loopGet(store, project, input)),
  loop_named: define<ViewQuestions['loop_named']['input']>(({ store, project }, { name }) =>
    loopNamed(store, project, name),
  ),
  session_access: define<ViewQuestions['session_access']['input']>(({ store, project }, input) =>
    sessionAccess(store, project, input),
  ),
  'session.list': define<Parameters<typeof sessionList>[2]>(({ store, project }, input) =>
    sessionList(store, project, input),
  ),
  'session.get': define<Parameters<typeof sessionGet>[2]>(({ store, project, now }, input) =>
    sessionGet(store, project, input, now),
  ),
  'session.messages': define<Parameters<typeof messagesOfSession>[2]>(({ store, project }, input) =>
    messagesOfSession(store, project, input),
  ),
  'session.turn_messages': define<Parameters<typeof messagesOfTurn>[2]>(
    ({ store, project }, input) => messagesOfTurn(store, project, input),
  ),
  'session.turns': define<Parameters<typeof turnList>[2]>(({ store, project }, input) =>
    turnList(store, project, input),
  ),
  'session.turn': define<Parameters<typeof turnGet>[2]>(({ store, project }, input) =>
    turnGet(store, project, input),
  ),
  'session.nudges': define<Parameters<typeof nudgeList>[2]>(({ store, project }, input) =>
    nudgeList(store, project, input),
  ),
  'session.get_nudge': define<Parameters<typeof nudgeGet>[2]>(({ store, project }, input) =>
    nudgeGet(store, project, input),
  ),
  'session.transcript': define<Parameters<typeof transcriptPage>[2]>(({ store, project }, input) =>
    transcriptPage(store, project, input),
  ),
  'session.turn_live': define<Parameters<typeof liveRows>[2]>(({ store, project }, input) =>
    liveRows(store, project, input),
  ),
  'audit.list': define<AuditFilters>(({ store, organization }, input) =>
    auditList(store, input, organization),
  ),
  'usage.list': define<UsageFilters>(({ store }, input) => usageList(store, input)),
  'agent.list': define<AgentFilters>(({ store, project }, input) =>
    agentList(store, project, input),
  ),
  'agent.get': define<OfRun>(({ store, project }, input) => agentGet(store, project, input)),
  'toolkit.list': define(({ store, project }) => definitionList(store, project, 'toolkit')),
  'toolkit.get': define<OfRun>(({ store, project }, input) =>
    definitionGet(store, project, 'toolkit', input),
  ),
  'skill.list': define(({ store, project }) => definitionList(store, project, 'skill')),
  'skill.get': define<OfRun>(({ store, project }, input) =>
    definitionGet(store, project, 'skill', input),
  ),
  'skill.list_organization': define(({ store, project }) =>
    definitionList(store, project, 'skill'),
  ),
  'skill.get_organization': define<OfRun>(({ store, project }, input) =>
    definitionGet(store, project, 'skill', input),
  ),
  'memory.get': define<OfRun>(({ store, project }, input) => memoryGet(store, project, input)),
  'memory.entries': define<MemoryFilters>(({ store, project }, input) =>
    memoryEntries(store, project, input),
  ),
  memory_changes: define<ViewQuestions['memory_changes']['input']>(
    ({ store, project, now }, input) => memoryChanges(store, project, input, now),
  ),
  skill_usage: define<ViewQuestions['skill_usage']['input']>(({ store }, input) =>
    skillUsage(store, input),
  ),
  timeline: define<ViewQuestions['timeline']['input']>(({ store, project, oldest }, input) =>
    timeline(store, project, input, oldest),
  ),
  feed: define<ViewQuestions['feed']['input']>(({ store, project, current, oldest }, input) =>
    feed(store, project, input, current, oldest),
  ),
  channel_events: define<ViewQuestions['channel_events']['input']>(
    ({ store, project, oldest }, input) => channelEvents(store, project, input, oldest),
  ),
  channel_agents: define<ViewQuestions['channel_agents']['input']>(({ store, project }, { id }) =>
    agentsOf(store, project, id),
  ),
  channel_access: define<ViewQuestions['channel_access']['input']>(
    ({ store, project, current }, input) => access(store, project, input, current),
  ),
  channel_facts: define<ViewQuestions['channel_facts']['input']>(
    ({ store, project }, { id, message_id }) =>
      messageFacts(channelRow(store, project, id), store, message_id),
  ),
  channels_of: define<ViewQuestions['channels_of']['input']>(({ store, project }, { member_id }) =>
    channelsOf(store, project, member_id),
  ),
  agent_home: define<ViewQuestions['agent_home']['input']>(({ store }, { agent_id }) =>
    agentHome(store, agent_id),
  ),
  locate: define<ViewQuestions['locate']['input']>(({ store }, { run_id }) =>
    locate(store, run_id),
  ),
  run_of_key: define<ViewQuestions['run_of_key']['input']>(({ store, project }, { stem }) =>
    runOfKey(store, project, stem),
  ),
  leases: define<ViewQuestions['leases']['input']>(({ store, project }, { session }) =>
    leases(store, project, session),
  ),
  'action.list': define<Paging>(({ store, project }, input) => actionList(store, project, input)),
  'action.get': define<{ action_name: string }>(({ store, project }, { action_name }) =>
    actionGet(store, project, 'name', action_name),
  ),
  'organization_action.list': define<Paging>(({ store, project }, input) =>
    actionList(store, project, input),
  ),
  'organization_action.get': define<{ action_id: string }>(({ store, project }, { action_id }) =>
    actionGet(store, project, 'id', action_id),
  ),
  'invocation.list': define<InvocationFilters>(({ store, project }, input) =>
    invocationList(store, project, input),
  ),
  'webhook.list': define<Paging & { enabled?: boolean }>(({ store, project }, input) =>
    webhookList(store, project, input),
  ),
  'webhook.get': define<{ webhook_id: string }>(({ store, project }, input) =>
    webhookGet(store, project, input),
  ),
  'webhook.deliveries': define<Parameters<typeof deliveryList>[2]>(
    ({ store, project, now }, input) => deliveryList(store, project, input, now),
  ),
  callable: define<ViewQuestions['callable']['input']>(({ store, project, now }, { name }) =>
    callable(store, project, watch(store, project, now), name),
  ),
  published_keys: define<ViewQuestions['published_keys']['input']>(({ store, project }, input) =>
    publishedKeys(store, project, input),
  ),
  shared_actions: define<ViewQuestions['shared_actions']['input']>(
    ({ store, project }, { name }) => ({
      items: actionsOf<OrganizationAction>(store, project, name),
    }),
  ),
} satisfies Partial<Record<RowName, Query<never>>> & {
  readonly [N in keyof ViewQuestions]: Query<never>
}

/**
 * The query with a name, or that of the row of which the named one is another form; undefined when
 * this view does not know it.
 */
export function queryOf(
  name: string,
): ((asked: QueryContext, input: unknown) => unknown) | undefined {
  const row = Object.hasOwn(api, name) ? (api as Readonly<Record<string, Row>>)[name] : undefined
  const key = row?.shape.as ?? name
  return Object.hasOwn(queries, key)
    ? (queries[key as keyof typeof queries] as (asked: QueryContext, input: unknown) => unknown)
    : undefined
}
