/**
 * What is sent over a connection: messages, and questions that each want one answer. All answers come to one subscription,
 * told apart by a number, and one timer watches over all of them: a question costs its bytes and one promise.
 *
 * Invariants:
 * A1. A question is settled once: by its answer, by its time being over, or because the connection was lost or closed. All
 *     but the first say nothing about whether the question arrived.
 * A2. Nothing is sent twice: whoever repeats knows what a repeat means.
 * A3. What is sent in one turn of the event loop leaves together, in its order. The client library writes to its socket once
 *     for each callback, which costs a system call here and wakes up the server: under load that was 42 % of the time of a
 *     gateway.
 * A4. A question that comes while there is no connection is sent once there is one, unless its time is over by then.
 */
import {
  ClosedConnectionError,
  NoRespondersError,
  TimeoutError,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
} from '@nats-io/transport-node'
import type { Log } from '../../gateway/ports.ts'
import { Disconnected, sentence } from './failures.ts'
import type { Namespace } from './server/namespace.ts'
import { Overdue, type Limited } from './journal/overdue.ts'

export interface RequestMux {
  /**
   * Ask, and give the answer.
   * @param timeout milliseconds to wait for it.
   * @throws Forbidden when the account lacks the permission, NoRespondersError when nobody listens, TimeoutError, Disconnected, ClosedConnectionError; InvalidArgumentError when
   * it is larger than the server accepts.
   */
  ask(
    subject: string,
    data: Uint8Array,
    headers: MsgHdrs | undefined,
    timeout: number,
  ): Promise<Msg>
  /** Send a message that wants no answer. One that cannot be sent is logged. */
  tell(subject: string, data: Uint8Array, headers?: MsgHdrs): void
  /** Resolves when everything told and asked before has been handed to the connection. */
  sent(): Promise<void>
  /** The server refused what was sent to a subject: its open questions fail. */
  refused(subject: string, reason: Error): void
  /** The connection does not stand any more. */
  lost(): void
  /** The connection stands again. */
  found(): void
}

interface Question extends Limited {
  readonly subject: string
  readonly send: () => void
  readonly answered: (message: Msg) => void
  readonly failed: (error: Error) => void
}

/** Questions and messages over a connection that stands. Subjects are those of the servers. */
export function createRequestMux(
  connection: NatsConnection,
  space: Namespace,
  log: Log,
): RequestMux {
  const open = new Map<string, Question>()
  const overdue = new Overdue<Question>()
  const inbox = space.newInbox()
  let held: (() => void)[] | undefined
  let leaving: (() => void)[] = []
  let counter = 0
  let begun = false

  const leave = (): void => {
    const all = leaving
    leaving = []
    for (const one of all) one()
  }
  /** At the end of this turn of the event loop. */
  const soon = (send: () => void): void => {
    if (leaving.push(send) === 1) setImmediate(leave)
  }
  /** The question of a number, if it is still open: it is settled now. */
  const close = (number: string): Question | undefined => {
    const question = open.get(number)
    if (!question) return undefined
    open.delete(number)
    overdue.delete(question)
    return question
  }
  const begin = (): void => {
    begun = true
    connection.subscribe(`${inbox}.*`, {
      callback: (_, message) => close(message.subject.slice(inbox.length + 1))?.answered(message),
    })
    void connection.closed().then(() => overdue.end())
  }

  return {
    ask: (subject, data, headers, timeout) =>
      new Promise((done, failed) => {
        if (connection.isClosed()) return failed(new ClosedConnectionError())
        if (!begun) begin()
        const number = (counter++).toString(36)
        const reply = `${inbox}.${number}`
        const question: Question = {
          subject,
          until: performance.now() + timeout,
          failed,
          over: () => {
            close(number)
            failed(connection.isClosed() ? new ClosedConnectionError() : new TimeoutError())
          },
          answered: (message) =>
            message.data.length === 0 && message.headers?.code === 503
              ? failed(new NoRespondersError(subject))
              : done(message),
          send: () => {
            if (!open.has(number)) return
            try {
              connection.publish(subject, data, headers ? { reply, headers } : { reply })
            } catch (error) {
              close(number)
              failed(error as Error)
            }
          },
        }
        open.set(number, question)
        overdue.add(question)
        if (held) held.push(question.send)
        else soon(question.send)
      }),
    tell: (subject, data, headers) =>
      soon(() => {
        if (connection.isClosed()) return
        try {
          connection.publish(subject, data, headers ? { headers } : {})
        } catch (error) {
          log.warn(
            { subject, bytes: data.length, reason: sentence(error) },
            'a message could not be sent',
          )
        }
      }),
    sent: () => new Promise((done) => soon(done)),
    refused: (subject, reason) => {
      for (const [number, question] of open)
        if (question.subject === subject) close(number)?.failed(reason)
    },
    lost: () => {
      if (held) return
      leave()
      held = []
      for (const number of open.keys()) close(number)?.failed(new Disconnected())
    },
    found: () => {
      const waiting = held ?? []
      held = undefined
      for (const send of waiting) soon(send)
    },
  }
}
