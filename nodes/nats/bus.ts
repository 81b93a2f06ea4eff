/**
 * Core NATS messaging. Listeners of this process are called directly. NATS delivers messages
 * between processes. The connection does not echo, so NATS does not send a process its own
 * messages.
 *
 * Invariants:
 * B1. A handler never runs within the call that publishes or requests, except in `here`, which
 *     returns an answer immediately. Messages of one publisher stay in order.
 * B2. One listener of a group receives a published message. If that listener belongs to the
 *     publisher's process, a header makes the group's members in other processes ignore the
 *     message.
 * B3. A handler's failure is logged and counts as no answer.
 *
 * Listeners of one process share the same message object, so no listener may change it.
 */
import { randomUUID } from 'node:crypto'
import { Empty, headers, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { Bus, NoAnswer } from '../host/ports.ts'
import { createListeners, type Listener } from './bus/listeners.ts'
import { LocalCalls } from './bus/local-calls.ts'
import { type RequestPart, RequestParts, splitRequest } from './bus/parts.ts'
import { errorText, isNoResponders, isUnanswered } from './failures.ts'
import type { Nats } from './server/connect.ts'

/** Header with the groups of which a listener in the publisher's own process gets the message. */
const SERVED = 'Baton-Served'
/**
 * Header of a reply that declines a request, because no group member in the process answers it, or
 * the listener has been removed. The requester then need not wait for its timeout.
 */
const DECLINED = 'Baton-Declined'

/**
 * Encodes a message as JSON. The text of the property `appended` follows after a line feed, which
 * JSON does not contain. JSON would escape every quotation mark of the text.
 */
function encode(message: unknown): Uint8Array {
  const text = (message as { readonly appended?: unknown } | null | undefined)?.appended
  if (typeof text !== 'string') return Buffer.from(JSON.stringify(message) ?? 'null')
  const rest = { ...(message as object), appended: undefined }
  return Buffer.from(`${JSON.stringify(rest)}\n${text}`)
}
function decode(data: Uint8Array): unknown {
  if (data.length === 0) return undefined
  const text = (
    data instanceof Buffer ? data : Buffer.from(data.buffer, data.byteOffset, data.length)
  ).toString()
  const end = text.indexOf('\n')
  if (end < 0) return JSON.parse(text)
  return { ...JSON.parse(text.slice(0, end)), appended: text.slice(end + 1) }
}
const header = (name: string, value: string): MsgHdrs => {
  const made = headers()
  made.set(name, value)
  return made
}

/** Requests an answer of a listener in another process. */
function requestElsewhere(
  { request, send, space, log }: Nats,
  subject: string,
  message: unknown,
  timeout: number,
): Promise<{ readonly answer: unknown } | NoAnswer> {
  const failed = (error: unknown): NoAnswer => {
    if (isNoResponders(error)) return 'no_responders'
    if (!isUnanswered(error))
      log.warn(
        { event: 'nats_request_failed', subject, reason: errorText(error) },
        'NATS request failed',
      )
    return 'timeout'
  }
  const result = (outcome: Msg | Error) => {
    if (outcome instanceof Error) return failed(outcome)
    if (outcome.headers?.has(DECLINED)) return 'no_responders'
    try {
      return { answer: decode(outcome.data) }
    } catch (error) {
      return failed(error)
    }
  }
  return new Promise((done) => {
    try {
      const to = space.subject(subject)
      const parts = splitRequest(encode(message), randomUUID)
      const last = parts.at(-1) as RequestPart
      for (const part of parts.slice(0, -1)) send(to, part.data, part.headers)
      request(to, last.data, last.headers, timeout, (outcome) => done(result(outcome)))
    } catch (error) {
      done(failed(error))
    }
  })
}
function decline(nats: Nats, { reply }: Msg): void {
  if (reply) nats.send(reply, Empty, header(DECLINED, '1'))
}

/**
 * Creates the bus of a connection.
 * @param alone returns whether no other process can be listening. While it returns true,
 *   publications and requests stay within the process.
 * @param wanted returns whether a process besides this one may be listening to a subject.
 */
export function createBus(
  nats: Nats,
  alone: () => boolean = () => false,
  wanted: (subject: string) => boolean = () => true,
): Bus {
  const { connection, log, space } = nats
  const listeners = createListeners()
  const calls = new LocalCalls(log)

  const receive = async (listener: Listener, message: Msg, parts: RequestParts): Promise<void> => {
    const { group } = listener
    const data = parts.join(message)
    if (!data) return
    if (group !== undefined && message.headers?.get(SERVED).split(' ').includes(group)) return
    // The server chose one subscription of the group. If its listener does not answer, the group's
    // other listeners in this process may answer.
    const others =
      group === undefined || !message.reply
        ? []
        : listeners
            .matching(space.plain(message.subject))
            .filter((other) => other.group === group && other !== listener)
    const answer = await calls.first(
      [listener, ...others],
      decode(data),
      space.plain(message.subject),
    )
    if (!message.reply || connection.isClosed()) return
    if (answer !== undefined) nats.send(message.reply, encode(answer))
    else if (group !== undefined) decline(nats, message)
  }

  return {
    request: (subject, message, timeout) => {
      const here = listeners.matching(subject)
      if (here.length === 0)
        return alone()
          ? Promise.resolve('no_responders')
          : requestElsewhere(nats, subject, message, Math.ceil(timeout))
      const until = performance.now() + timeout
      return new Promise((done) =>
        calls.ask(here, message, subject, timeout, (answer) => {
          if (answer !== undefined) return done({ answer })
          if (alone()) return done('no_responders')
          const left = Math.ceil(until - performance.now())
          done(left < 1 ? 'timeout' : requestElsewhere(nats, subject, message, left))
        }),
      )
    },
    hears: (topic) => listeners.hears(topic) || !alone(),
    wants: (subject) => listeners.matching(subject).length > 0 || (!alone() && wanted(subject)),
    here: (subject, message) => {
      for (const listener of listeners.matching(subject)) {
        const answer = calls.call(listener, message, subject)
        if (answer !== undefined && !(answer instanceof Promise)) return answer
      }
      return undefined
    },
    publish: (subject, message, text) => {
      const { listening, groups } = listeners.chosen(subject)
      for (const listener of listening)
        queueMicrotask(() => void calls.call(listener, message, subject))
      if (!alone())
        nats.send(
          space.subject(subject),
          text ? Buffer.from(text()) : encode(message),
          groups.length > 0 ? header(SERVED, groups.join(' ')) : undefined,
        )
    },
    subscribe: (subject, handler, group, within) => {
      const listener: Listener = { subject, handler, group }
      const remove = listeners.add(listener)
      if (within === 'process') return remove
      const parts = new RequestParts()
      let left = false
      const subscription = connection.subscribe(space.subject(subject), {
        ...(group !== undefined && { queue: group }),
        callback: (error, message) => {
          if (error)
            log.error(
              { event: 'nats_subscription_ended', subject, error },
              'NATS subscription ended',
            )
          else if (left) decline(nats, message)
          else
            receive(listener, message, parts).catch((failure: unknown) =>
              log.error(
                { event: 'message_handling_failed', subject, error: failure },
                'message handling failed',
              ),
            )
        },
      })
      return () => {
        remove()
        left = true
        // Messages in transit are still received and declined, so that no requester waits for an
        // answer that never comes.
        if (!connection.isClosed()) subscription.drain().catch(() => {})
      }
    },
    flush: async () => {
      await nats.flush()
      await connection.flush()
    },
  }
}
