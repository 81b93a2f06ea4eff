/** Every question a view answers, by name: the query rows of the API that need history, and what gateways ask to follow. */
import { api, type RowName } from '../protocol/api.ts'
import type { OrganizationAction } from '../protocol/api/organization-actions.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { ViewQuestions } from '../protocol/internal.ts'
import type { Row } from '../protocol/contract.ts'
import { actionLog } from './actions.ts'
import { auditList, type AuditFilters } from './audit.ts'
import { channelEventPage, channelEvents } from './channel-events.ts'
import { access, channelGet, channelList, channelRow, channelsOf, memberList, type Asking } from './channels.ts'
import { actionGet, actionList, actionsOf, callable } from './definitions.ts'
import { feed } from './feed.ts'
import { invocationList, type InvocationFilters } from './invocations.ts'
import { jobsById, leases, runJobs } from './jobs.ts'
import { loopGet, loopList, loopNamed } from './loops.ts'
import { interactionGet, interactionList, type InteractionFilters } from './interactions.ts'
import { search } from './message-search.ts'
import { messageFacts, messageGet, messageList } from './messages.ts'
import type { Paging } from './page.ts'
import { runList, workflowRuns, type RunFilters } from './run-list.ts'
import { locate, missingRun, runDetail, runRow } from './runs.ts'
import { eventGet, eventList, type EventFilters } from './source-events.ts'
import { stepsOf } from './steps.ts'
import type { Store } from './store.ts'
import { eventPage, timeline } from './timeline.ts'
import { waitingOfStep } from './waiting.ts'
import { deliveryList, webhookGet, webhookList } from './webhooks.ts'
import { watch, workerList } from './workers.ts'
import { workflowGet, workflowList, workflowVersions } from './workflows.ts'
import type { RunStep } from '../protocol/api/runs.ts'

/** Where and when a question is asked. */
export interface Asked {
  readonly store: Store
  /** Number of the project, see `Store.findProject`. */
  readonly project: number
  /** Unix milliseconds. */
  readonly now: number
  /** Milliseconds for which a lost worker is still listed. */
  readonly stale: number
  readonly organization: string
  /** The cursor up to which the view has applied everything, and the one below which the journal was trimmed. */
  readonly current: number
  readonly oldest: number
}
type OfRun = Paging & { readonly id: string }
type Query<I> = (asked: Asked, input: I) => unknown
const define = <I>(query: Query<I>): Query<never> => query as Query<never>

function runSteps({ store, project, now }: Asked, { id }: OfRun): { items: RunStep[] } | Refusal {
  const run = runRow(store, project, id)
  if (!run) return missingRun
  const watching = watch(store, project, now)
  return { items: stepsOf(store, run).map((step) => {
    const waiting_on = waitingOfStep(step, jobsById(store, project), watching)
    return { ...step, ...(waiting_on && { waiting_on }) }
  }) }
}

const queries = {
  'run.list': define<RunFilters>(({ store, project }, input) => runList(store, project, input)),
  'run.get': define<OfRun>(({ store, project, now }, { id }) => runDetail(store, project, id, watch(store, project, now))),
  'run.steps': define(runSteps),
  'run.jobs': define<OfRun>(({ store, project, now }, input) => runJobs(store, project, input, watch(store, project, now))),
  'run.action_log': define<OfRun>(({ store, project }, input) => actionLog(store, project, input)),
  'run.events': define<{ id: string; after_sequence?: number; limit?: number }>(({ store, project }, input) => eventPage(store, project, input)),
  'workflow.list': define<Paging>(({ store, project }, input) => workflowList(store, project, input)),
  'workflow.get': define<OfRun>(({ store, project }, input) => workflowGet(store, project, input)),
  'workflow.versions': define<OfRun & { include_spec?: boolean }>(({ store, project }, input) => workflowVersions(store, project, input)),
  'workflow.runs': define<OfRun>(({ store, project }, input) => workflowRuns(store, project, input)),
  'interaction.list': define<InteractionFilters>(({ store, project }, input) => interactionList(store, project, input)),
  'interaction.get': define<OfRun>(({ store, project }, input) => interactionGet(store, project, input)),
  'worker.list': define(({ store, project, now, stale }) => workerList(store, project, now, stale)),
  'channel.list': define<Paging & Asking>(({ store, project }, input) => channelList(store, project, input)),
  'channel.get': define<OfRun & Asking>(({ store, project }, input) => channelGet(store, project, input)),
  'channel.members': define<OfRun & Asking>(({ store, project }, input) => memberList(store, project, input)),
  'channel.messages': define<OfRun & Asking>(({ store, project }, input) => messageList(store, project, input)),
  'channel.message': define<Asking & { id: string; message_id: string }>(({ store, project }, input) => messageGet(store, project, input)),
  'channel.search': define<Paging & Asking & { q: string; channel_id?: string }>(({ store, project }, input) => search(store, project, input)),
  'channel.events': define<Asking & { id: string; since?: number; limit?: number }>(({ store, project }, input) => channelEventPage(store, project, input)),
  'event.list': define<EventFilters>(({ store, project }, input) => eventList(store, project, input)),
  'event.get': define<OfRun>(({ store, project }, input) => eventGet(store, project, input)),
  'audit.list': define<AuditFilters>(({ store, organization }, input) => auditList(store, input, organization)),
  'loop.list': define<Paging & { status?: string; agent_id?: string }>(({ store, project }, input) => loopList(store, project, input)),
  'loop.get': define<OfRun>(({ store, project }, input) => loopGet(store, project, input)),
  loop_named: define<ViewQuestions['loop_named']['input']>(({ store, project }, { name }) => loopNamed(store, project, name)),
  timeline: define<ViewQuestions['timeline']['input']>(({ store, project, oldest }, input) => timeline(store, project, input, oldest)),
  feed: define<ViewQuestions['feed']['input']>(({ store, project, current, oldest }, input) => feed(store, project, input, current, oldest)),
  channel_events: define<ViewQuestions['channel_events']['input']>(({ store, project, oldest }, input) => channelEvents(store, project, input, oldest)),
  channel_access: define<ViewQuestions['channel_access']['input']>(({ store, project, current }, input) => access(store, project, input, current)),
  channel_facts: define<ViewQuestions['channel_facts']['input']>(({ store, project }, { id, message_id }) => messageFacts(channelRow(store, project, id), store, message_id)),
  channels_of: define<ViewQuestions['channels_of']['input']>(({ store, project }, { member_id }) => channelsOf(store, project, member_id)),
  locate: define<ViewQuestions['locate']['input']>(({ store }, { run_id }) => locate(store, run_id)),
  leases: define<ViewQuestions['leases']['input']>(({ store, project }, { session }) => leases(store, project, session)),
  'action.list': define<Paging>(({ store, project }, input) => actionList(store, project, input)),
  'action.get': define<{ action_name: string }>(({ store, project }, { action_name }) => actionGet(store, project, 'name', action_name)),
  'organization_action.list': define<Paging>(({ store, project }, input) => actionList(store, project, input)),
  'organization_action.get': define<{ action_id: string }>(({ store, project }, { action_id }) => actionGet(store, project, 'id', action_id)),
  'invocation.list': define<InvocationFilters>(({ store, project }, input) => invocationList(store, project, input)),
  'webhook.list': define<Paging & { enabled?: boolean }>(({ store, project }, input) => webhookList(store, project, input)),
  'webhook.get': define<{ webhook_id: string }>(({ store, project }, input) => webhookGet(store, project, input)),
  'webhook.deliveries': define<Paging & { webhook_id: string }>(({ store, project, now }, input) => deliveryList(store, project, input, now)),
  callable: define<ViewQuestions['callable']['input']>(({ store, project, now }, { name }) => callable(store, project, watch(store, project, now), name)),
  shared_actions: define<ViewQuestions['shared_actions']['input']>(({ store, project }, { name }) => ({ items: actionsOf<OrganizationAction>(store, project, name) })),
} satisfies Partial<Record<RowName, Query<never>>> & { readonly [N in keyof ViewQuestions]: Query<never> }

/** The query of a name, or of the row that the named one is another form of; undefined when this view does not know it. */
export function queryOf(name: string): ((asked: Asked, input: unknown) => unknown) | undefined {
  const row = Object.hasOwn(api, name) ? (api as Readonly<Record<string, Row>>)[name] : undefined
  const key = row?.shape.as ?? name
  return Object.hasOwn(queries, key) ? (queries[key as keyof typeof queries] as (asked: Asked, input: unknown) => unknown) : undefined
}
