/** The command `baton streams`, which follows several sequences over one connection. */
import { type Command, InvalidArgumentError } from 'commander'
import { needsTarget, type StreamTopic, streamTopics } from '../../protocol/streams/rows.ts'
import { followStreams, type StreamSubscription } from '../streams/follow.ts'
import { clientFor, connected, requireService } from './connection/connection.ts'
import type { Shell } from './shell.ts'

/**
 * Parses an argument, `topic` or `topic=target`, and adds its subscription to the earlier ones. The
 * argument also serves as the id of the subscription.
 */
function subscription(
  text: string,
  before: readonly StreamSubscription[] = [],
): readonly StreamSubscription[] {
  const [name = '', target] = text.split('=')
  const topic = streamTopics.find((known) => known === name)
  if (topic === undefined)
    throw new InvalidArgumentError(`It must begin with one of: ${streamTopics.join(', ')}.`)
  if (needsTarget(topic) && !target)
    throw new InvalidArgumentError(`The topic ${topic} needs an id: ${usageOf(topic)}.`)
  if (!needsTarget(topic) && target !== undefined)
    throw new InvalidArgumentError(`The topic ${topic} has no id.`)
  return [...before, { id: text, topic, ...(target !== undefined && { target }) }]
}
/** Returns the form of a topic as an argument. */
const usageOf = (topic: StreamTopic): string => (needsTarget(topic) ? `${topic}=<id>` : topic)

export function addStreams(program: Command, shell: Shell): void {
  const command = connected(
    program
      .command('streams')
      .description(
        'Follow several runs, sessions, channels, logs and lists, one JSON object per line',
      )
      .argument('<topic[=id]...>', streamTopics.map(usageOf).join(', '), subscription),
  ).addHelpText(
    'after',
    '\nExample:\n  $ baton streams runs changes run=run_01JZ3M0Q0R8XG4V2T6Y9ABCDEF\n' +
      'Exits with 1 if a subscription was refused.\n',
  )
  command.action(
    shell.guarded(async (wanted: readonly StreamSubscription[]) => {
      const baton = clientFor(command, shell.env)
      const { project } = baton.transport
      await requireService(baton)
      for await (const frame of followStreams(
        baton,
        wanted.map((one) => ({ project, ...one })),
        { onReconnect: (reason) => shell.note(`(${reason}; reconnecting)`) },
      )) {
        shell.print(JSON.stringify(frame))
        if (frame.event === 'subscription.refused') process.exitCode = 1
      }
    }),
  )
}
