/**
 * The row of the multiplexed stream: many sequences over one connection, for clients that may open
 * only a few connections, such as browsers. Each subscription has its own cursor, and the service
 * stores nothing about the stream.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id } from '../common.ts'
import { stream } from '../contract.ts'
import { LogName, LogTail } from '../environments/schema.ts'
import { errors, type FieldError } from '../errors.ts'
import { LogFilter } from '../jobs/logs.ts'
import { allChangeKinds } from './changes.ts'
import { SUBSCRIPTIONS_PER_STREAM } from './limits.ts'

/**
 * A topic. `target`: whether a subscription names a target, such as a run. `cursor`: the type of
 * the cursors. `filters`: the names of the filters, if there are any.
 */
interface Topic {
  readonly target: boolean
  readonly cursor: 'number' | 'text' | 'none'
  readonly description: string
  readonly filters?: readonly string[]
}
const topics = {
  run: { target: true, cursor: 'number', description: 'the timeline of a run' },
  runs: { target: false, cursor: 'number', description: 'the feed of all runs' },
  session: { target: true, cursor: 'text', description: 'the transcript of a session' },
  channel: { target: true, cursor: 'number', description: 'the events of a channel' },
  changes: { target: false, cursor: 'number', description: 'the records that have changed' },
  logs: {
    target: true,
    cursor: 'number',
    description: 'the lines that workers print for a run',
    filters: Object.keys(LogFilter),
  },
  environment_log: {
    target: true,
    cursor: 'none',
    description: 'a log of the worker of an environment',
    filters: ['log_name', 'tail'],
  },
} as const satisfies Readonly<Record<string, Topic>>
export type StreamTopic = keyof typeof topics
/** The names of all topics. */
export const streamTopics = Object.keys(topics) as StreamTopic[]
/** Whether a subscription to the topic names a target, such as a run. */
export const needsTarget = (topic: StreamTopic): boolean => topics[topic].target

const StreamCursor = Type.Union([
  Type.Integer({ minimum: 0 }),
  Type.String({ minLength: 1, maxLength: 512 }),
])
const Filter = Closed(
  { ...LogFilter, log_name: Type.Optional(LogName), tail: LogTail },
  {
    description:
      'Selection of lines: for `logs`, the parameters of its single stream; for ' +
      '`environment_log`, `log_name` and `tail` of `environment.worker_logs`. Other topics have ' +
      'no parameters',
  },
)
const Subscription = Closed({
  id: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Id of the subscription, chosen by the client and unique in the request',
  }),
  project: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Handle or id. Only `changes` may omit it, which means the organization',
    }),
  ),
  topic: Type.Enum(streamTopics, {
    description: streamTopics.map((name) => `\`${name}\`: ${topics[name].description}`).join('; '),
  }),
  target: Type.Optional(
    Type.String({
      ...Id,
      description: 'Id of the run, session, channel or environment; other topics have no target',
    }),
  ),
  after: Type.Optional({
    ...StreamCursor,
    description:
      'The `cursor` of the last frame received. Without it, a run is sent from its start, ' +
      'a session from the newest part of its transcript, and everything else from now on. ' +
      '`environment_log` has no cursor and always begins with the newest lines',
  }),
  filter: Type.Optional(Filter),
})
export type StreamSubscription = Static<typeof Subscription>
const FollowStreams = Closed({
  subscriptions: Type.Array(Subscription, { minItems: 1, maxItems: SUBSCRIPTIONS_PER_STREAM }),
})
type FollowStreams = Static<typeof FollowStreams>

function checkSubscriptions({ subscriptions }: FollowStreams): readonly FieldError[] {
  const ids = new Set<string>()
  return subscriptions.flatMap(({ id, project, topic, target, after, filter }, index) => {
    const faults: FieldError[] = []
    const fault = (field: string, message: string) =>
      faults.push({ field: `subscriptions[${index}].${field}`, message })
    const known: Topic = topics[topic]
    if (ids.has(id)) fault('id', 'is used by another subscription')
    ids.add(id)
    if (project === undefined && topic !== 'changes') fault('project', 'is required')
    if (known.target && target === undefined) fault('target', `is required for \`${topic}\``)
    if (!known.target && target !== undefined) fault('target', `\`${topic}\` has no target`)
    if (after !== undefined && known.cursor === 'none') fault('after', `\`${topic}\` has no cursor`)
    else if (after !== undefined && (known.cursor === 'number') !== (typeof after === 'number'))
      fault('after', `must be a ${known.cursor} for \`${topic}\``)
    for (const name of Object.keys(filter ?? {}))
      if (!known.filters?.includes(name)) fault(`filter.${name}`, `\`${topic}\` has no such filter`)
    return faults
  })
}

const subscription = Type.String({ description: 'The `id` of the subscription' })
const StreamError = Type.Object({
  code: Type.Enum(Object.keys(errors)),
  message: Type.String(),
  details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})
const SubscriptionStarted = Type.Object({
  subscription,
  event: Type.Literal('subscription.started'),
  cursor: Type.Optional(StreamCursor),
  data: Type.Object({}),
})
const SubscriptionRefused = Type.Object({
  subscription,
  event: Type.Literal('subscription.refused'),
  data: Type.Object({ error: StreamError }),
})
const SubscriptionEnded = Type.Object({
  subscription,
  event: Type.Literal('subscription.ended'),
  data: Type.Object({
    reason: Type.Enum(['completed', 'access_lost'], {
      description:
        '`completed`: nothing follows, because the run has ended or the channel was deleted',
    }),
    error: Type.Optional(StreamError),
  }),
})
const ChangesFrame = Type.Object({
  subscription,
  event: Type.Literal('changes'),
  cursor: Type.Integer(),
  data: Type.Object({
    changes: Type.Array(
      Type.Object({
        kind: Type.String({
          description:
            `One of ${allChangeKinds.join(', ')}; or \`*\`: anything may have changed, ` +
            'so load everything again',
        }),
        id: Type.Optional(
          Type.String({
            description: 'Id of the record; if absent, any record of the kind may have changed',
          }),
        ),
      }),
    ),
  }),
})
const LogTextFrame = Type.Object({
  subscription,
  event: Type.Literal('log.text'),
  data: Type.Object({
    log_name: LogName,
    text: Type.String({ description: 'Untrusted text to append to the previous text' }),
    reset: Type.Optional(
      Type.Literal(true, { description: 'true: the text replaces the previous text' }),
    ),
    truncated: Type.Optional(
      Type.Boolean({ description: 'With `reset`: whether older lines are missing' }),
    ),
  }),
})
const TopicFrame = Type.Object({
  subscription,
  event: Type.String({ description: 'The event name in the single stream of the topic' }),
  cursor: Type.Optional({
    ...StreamCursor,
    description: 'Position after the frame; absent from frames that are never repeated',
  }),
  data: Type.Record(Type.String(), Type.Unknown(), {
    description: 'The data of the frame in the single stream of the topic',
  }),
})
/** A frame of the multiplexed stream, sent in the `data` field of a `message` event. */
export const StreamFrame = Type.Union([
  SubscriptionStarted,
  SubscriptionRefused,
  SubscriptionEnded,
  ChangesFrame,
  LogTextFrame,
  TopicFrame,
])

export const streams = {
  'stream.follow': stream('POST /streams', {
    summary: 'Follow several runs, sessions, channels, logs and lists over one connection',
    tag: 'streams',
    permission: 'authenticated',
    stream: 'sse',
    body: FollowStreams,
    check: checkSubscriptions,
    reply: StreamFrame,
  }),
} as const
