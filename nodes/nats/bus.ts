/**
 * Core messaging. Listeners of this process are called directly; NATS carries messages between processes. The connection
 * has no echo, so what is delivered directly does not come back.
 *
 * Invariants:
 * B1. A handler is never called within the call that publishes or asks, unless who asks wants an answer at once (`here`), and
 *     messages of one publisher keep their order.
 * B2. One listener of a group gets a published message: when it is one of this process, the message says so to the group's
 *     members elsewhere.
 * B3. A handler's failure is logged and counts as no answer.
 * Messages between listeners of one process are the same object: nobody changes a message.
 */
import { Empty, headers, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { Bus, NoAnswer } from '../host/ports.ts'
import type { Nats } from './server/connect.ts'
import { isNoResponders, isUnanswered, sentence } from './failures.ts'
import { createListeners, type Listener } from './listeners.ts'
import { Overdue, type Limited } from './journal/overdue.ts'

/** Groups that have been served by the publisher's own process. */
const SERVED = 'Baton-Served'
/** The answer of a group of which no member here wants the request, and of a listener that has left: saves the asking side its timeout. */
const DECLINED = 'Baton-Declined'

const encoder = new TextEncoder()
const encode = (message: unknown): Uint8Array => encoder.encode(JSON.stringify(message) ?? 'null')
const decode = (message: Msg): unknown =>
  message.data.length === 0 ? undefined : JSON.parse(message.string())
const header = (name: string, value: string): MsgHdrs => {
  const made = headers()
  made.set(name, value)
  return made
}

/**
 * The bus of a connection.
 * @param alone whether no other process can be listening: then nothing is encoded and nothing is sent.
 */
export function createBus(nats: Nats, alone: () => boolean = () => false): Bus {
  const { connection, log, space } = nats
  const listeners = createListeners()

  const overdue = new Overdue<Limited>()

  /** What a listener answers, or the promise of it. */
  const call = (listener: Listener, message: unknown, subject: string): unknown => {
    const failed = (error: unknown): undefined =>
      void log.error({ subject, error }, 'a listener failed')
    try {
      const answer = listener.handler(message, subject)
      return answer instanceof Promise ? answer.catch(failed) : answer
    } catch (error) {
      return failed(error)
    }
  }
  const first = async (
    all: readonly Listener[],
    message: unknown,
    subject: string,
  ): Promise<unknown> => {
    for (const listener of all) {
      const given = call(listener, message, subject)
      const answer = given instanceof Promise ? await given : given
      if (answer !== undefined) return answer
    }
    return undefined
  }
  /** Answer of the listeners here, or undefined when none wants it or the time is over. */
  const askHere = (
    here: readonly Listener[],
    subject: string,
    message: unknown,
    timeout: number,
  ): Promise<unknown> =>
    new Promise((resolve) => {
      const asked: Limited = { until: performance.now() + timeout, over: () => resolve(undefined) }
      overdue.add(asked)
      queueMicrotask(
        () =>
          void first(here, message, subject).then((answer) => {
            overdue.delete(asked)
            resolve(answer)
          }),
      )
    })
  const askElsewhere = async (
    subject: string,
    message: unknown,
    timeout: number,
  ): Promise<{ readonly answer: unknown } | NoAnswer> => {
    try {
      const reply = await nats.ask(space.subject(subject), encode(message), undefined, timeout)
      return reply.headers?.has(DECLINED) ? 'no_responders' : { answer: decode(reply) }
    } catch (error) {
      if (isNoResponders(error)) return 'no_responders'
      if (!isUnanswered(error)) log.warn({ subject, reason: sentence(error) }, 'a request failed')
      return 'timeout'
    }
  }

  const decline = ({ reply }: Msg): void => {
    if (reply) nats.tell(reply, Empty, header(DECLINED, '1'))
  }
  /** A message from another process, for one subscription. */
  const receive = async (listener: Listener, message: Msg): Promise<void> => {
    const { group } = listener
    if (group !== undefined && message.headers?.get(SERVED).split(' ').includes(group)) return
    // The server chose one subscription of the group; when it does not want the request, the others here may.
    const others =
      group === undefined || !message.reply
        ? []
        : listeners
            .matching(space.plain(message.subject))
            .filter((other) => other.group === group && other !== listener)
    const answer = await first([listener, ...others], decode(message), space.plain(message.subject))
    if (!message.reply || connection.isClosed()) return
    if (answer !== undefined) nats.tell(message.reply, encode(answer))
    else if (group !== undefined) decline(message)
  }

  return {
    request: async (subject, message, timeout) => {
      const until = performance.now() + timeout
      const here = listeners.matching(subject)
      const answer = here.length === 0 ? undefined : await askHere(here, subject, message, timeout)
      if (answer !== undefined) return { answer }
      if (alone()) return 'no_responders'
      const left = Math.ceil(until - performance.now())
      return left < 1 ? 'timeout' : askElsewhere(subject, message, left)
    },
    here: (subject, message) => {
      for (const listener of listeners.matching(subject)) {
        const answer = call(listener, message, subject)
        if (answer !== undefined && !(answer instanceof Promise)) return answer
      }
      return undefined
    },
    publish: (subject, message, text) => {
      const { listening, groups } = listeners.chosen(subject)
      for (const listener of listening) queueMicrotask(() => void call(listener, message, subject))
      if (!alone())
        nats.tell(
          space.subject(subject),
          text ? encoder.encode(text()) : encode(message),
          groups.length > 0 ? header(SERVED, groups.join(' ')) : undefined,
        )
    },
    subscribe: (subject, handler, group) => {
      const listener: Listener = { subject, handler, group }
      const remove = listeners.add(listener)
      let left = false
      const subscription = connection.subscribe(space.subject(subject), {
        ...(group !== undefined && { queue: group }),
        callback: (error, message) => {
          if (error) log.error({ subject, error }, 'a subscription ended')
          else if (left) decline(message)
          else
            receive(listener, message).catch((failure: unknown) =>
              log.error({ subject, error: failure }, 'a message could not be handled'),
            )
        },
      })
      return () => {
        remove()
        left = true
        // What is on its way here is still received, and declined: whoever asked need not wait for an answer that never comes.
        if (!connection.isClosed()) subscription.drain().catch(() => {})
      }
    },
    flush: async () => {
      await nats.sent()
      await connection.flush()
    },
  }
}
