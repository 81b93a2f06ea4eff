/**
 * All queries that a view answers, by name: the query rows of the API that need history, and
 * internal queries of gateways.
 */
import { exchangeList } from './tables/channels/exchanges.ts'
import { api } from '../protocol/api.ts'
import type { Action } from '../protocol/actions/rows.ts'
import type { OrganizationAction } from '../protocol/actions/organization-rows.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { DeepReadonly, ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import type { Row } from '../protocol/contract.ts'
import { actionLog } from './tables/actions/actions.ts'
import { agentGet, agentHome, agentList } from './tables/agents/agents.ts'
import { auditList } from './tables/access/audit.ts'
import { channelEventPage, channelEvents } from './tables/channels/events.ts'
import {
  access,
  agentsOf,
  channelGet,
  channelList,
  channelRow,
  channelsOf,
  memberList,
} from './tables/channels/channels.ts'
import { definitionGet, definitionList, skillUsage } from './tables/agents/toolkits.ts'
import { actionGet, actionList, actionsOf, callable } from './tables/actions/definitions.ts'
import { feed } from './tables/runs/feed.ts'
import { invocationList } from './tables/actions/invocations.ts'
import { jobsById, leases, runJobs } from './tables/jobs/jobs.ts'
import { loopGet, loopList, loopNamed } from './tables/loops/loops.ts'
import { interactionGet, interactionList } from './tables/interactions/interactions.ts'
import { memoryChanges, memoryEntries, memoryGet } from './tables/memory/memory.ts'
import { search } from './tables/channels/message-search.ts'
import { messageFacts, messageGet, messageList } from './tables/channels/messages.ts'
import { wants, type Including, type Paging } from './page.ts'
import { runList, workflowRuns } from './tables/runs/list.ts'
import { locate, runDetail, runOfKey } from './tables/runs/runs.ts'
import { missingRun, runRow } from './tables/runs/run-row.ts'
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
import { eventGet, eventList, publishedKeys } from './tables/events/source-events.ts'
import { stepsOf } from './tables/runs/steps.ts'
import type { Store } from './store.ts'
import { eventPage, timeline } from './tables/runs/timeline.ts'
import { waitingOfStep } from './tables/runs/waiting.ts'
import { liveRows, transcriptPage } from './tables/sessions/transcript.ts'
import { deliveryList, webhookGet, webhookList } from './tables/webhooks/webhooks.ts'
import { usageList } from './tables/usage/usage.ts'
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
/** A query of each name, with the input and the reply that `ViewQueries` gives it. */
type Queries = {
  readonly [N in ViewQueryName]: (
    context: QueryContext,
    input: ViewQueries[N]['input'],
  ) => DeepReadonly<ViewQueries[N]['reply']> | Refusal
}

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

const queries: Queries = {
  'run.list': ({ store, project }, input) => runList(store, project, input),
  'run.get': ({ store, project, now }, input) =>
    runDetail(store, project, input, watch(store, project, now)),
  'run.steps': runSteps,
  'run.jobs': ({ store, project, now }, input) =>
    runJobs(store, project, input, watch(store, project, now)),
  'run.action_log': ({ store, project }, input) => actionLog(store, project, input),
  'run.events': ({ store, project }, input) => eventPage(store, project, input),
  'workflow.list': ({ store, project }, input) => workflowList(store, project, input),
  'workflow.get': ({ store, project }, input) => workflowGet(store, project, input),
  'workflow.versions': ({ store, project }, input) => workflowVersions(store, project, input),
  'workflow.runs': ({ store, project }, input) => workflowRuns(store, project, input),
  'interaction.list': ({ store, project }, input) => interactionList(store, project, input),
  'interaction.get': ({ store, project }, input) => interactionGet(store, project, input),
  'catalog.worker_models': ({ store, project, now }) => workerModels(watch(store, project, now)),
  'worker.list': ({ store, project, now, stale }) => workerList(store, project, now, stale),
  'channel.list': ({ store, project }, input) => channelList(store, project, input),
  'channel.get': ({ store, project }, input) => channelGet(store, project, input),
  'channel.members': ({ store, project }, input) => memberList(store, project, input),
  'channel.exchanges': ({ store, project }, input) => exchangeList(store, project, input),
  'channel.messages': ({ store, project }, input) => messageList(store, project, input),
  'channel.message': ({ store, project }, input) => messageGet(store, project, input),
  'channel.search': ({ store, project }, input) => search(store, project, input),
  'channel.events': ({ store, project }, input) => channelEventPage(store, project, input),
  'event.list': ({ store, project }, input) => eventList(store, project, input),
  'event.get': ({ store, project }, input) => eventGet(store, project, input),
  'loop.list': ({ store, project }, input) => loopList(store, project, input),
  'loop.get': ({ store, project }, input) => loopGet(store, project, input),
  loop_named: ({ store, project }, { name }) => loopNamed(store, project, name),
  session_access: ({ store, project }, input) => sessionAccess(store, project, input),
  'session.list': ({ store, project }, input) => sessionList(store, project, input),
  'session.get': ({ store, project, now }, input) => sessionGet(store, project, input, now),
  'session.messages': ({ store, project }, input) => messagesOfSession(store, project, input),
  'session.turn_messages': ({ store, project }, input) => messagesOfTurn(store, project, input),
  'session.turns': ({ store, project }, input) => turnList(store, project, input),
  'session.turn': ({ store, project }, input) => turnGet(store, project, input),
  'session.nudges': ({ store, project }, input) => nudgeList(store, project, input),
  'session.get_nudge': ({ store, project }, input) => nudgeGet(store, project, input),
  'session.transcript': ({ store, project }, input) => transcriptPage(store, project, input),
  'session.turn_live': ({ store, project }, input) => liveRows(store, project, input),
  'audit.list': ({ store, organization }, input) => auditList(store, input, organization),
  'usage.list': ({ store }, input) => usageList(store, input),
  'agent.list': ({ store, project }, input) => agentList(store, project, input),
  'agent.get': ({ store, project }, input) => agentGet(store, project, input),
  'toolkit.list': ({ store, project }) => definitionList(store, project, 'toolkit'),
  'toolkit.get': ({ store, project }, input) => definitionGet(store, project, 'toolkit', input),
  'skill.list': ({ store, project }) => definitionList(store, project, 'skill'),
  'skill.get': ({ store, project }, input) => definitionGet(store, project, 'skill', input),
  'skill.list_organization': ({ store, project }) => definitionList(store, project, 'skill'),
  'skill.get_organization': ({ store, project }, input) =>
    definitionGet(store, project, 'skill', input),
  'memory.get': ({ store, project }, input) => memoryGet(store, project, input),
  'memory.entries': ({ store, project }, input) => memoryEntries(store, project, input),
  memory_changes: ({ store, project, now }, input) => memoryChanges(store, project, input, now),
  skill_usage: ({ store }, input) => skillUsage(store, input),
  timeline: ({ store, project, oldest }, input) => timeline(store, project, input, oldest),
  feed: ({ store, project, current, oldest }, input) =>
    feed(store, project, input, current, oldest),
  channel_events: ({ store, project, oldest }, input) =>
    channelEvents(store, project, input, oldest),
  channel_agents: ({ store, project }, { id }) => agentsOf(store, project, id),
  channel_access: ({ store, project, current }, input) => access(store, project, input, current),
  channel_facts: ({ store, project }, { id, message_id }) =>
    messageFacts(channelRow(store, project, id), store, message_id),
  channels_of: ({ store, project }, { member_id }) => channelsOf(store, project, member_id),
  agent_home: ({ store }, { agent_id }) => agentHome(store, agent_id),
  locate: ({ store }, { run_id }) => locate(store, run_id),
  run_of_key: ({ store, project }, { stem }) => runOfKey(store, project, stem),
  leases: ({ store, project }, { session }) => leases(store, project, session),
  'action.list': ({ store, project }, input) => actionList<Action>(store, project, input),
  'action.get': ({ store, project }, { action_name }) =>
    actionGet<Action>(store, project, 'name', action_name),
  'organization_action.list': ({ store, project }, input) =>
    actionList<OrganizationAction>(store, project, input),
  'organization_action.get': ({ store, project }, { action_id }) =>
    actionGet<OrganizationAction>(store, project, 'id', action_id),
  'invocation.list': ({ store, project }, input) => invocationList(store, project, input),
  'webhook.list': ({ store, project }, input) => webhookList(store, project, input),
  'webhook.get': ({ store, project }, input) => webhookGet(store, project, input),
  'webhook.deliveries': ({ store, project, now }, input) =>
    deliveryList(store, project, input, now),
  callable: ({ store, project, now }, { name }) =>
    callable(store, project, watch(store, project, now), name),
  published_keys: ({ store, project }, input) => publishedKeys(store, project, input),
  shared_actions: ({ store, project }, { name }) => ({
    items: actionsOf<OrganizationAction>(store, project, name),
  }),
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
