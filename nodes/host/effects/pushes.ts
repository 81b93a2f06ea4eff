/**
 * Sends messages to gateways and executors. The messages of one commit to one receiver are sent
 * together, and are answered together.
 *
 * Invariants:
 * P1. Each message has its own answer, as if it had been sent alone.
 * P2. A receiver gets its messages in order, except generations. A generation is sent alone,
 *     because the receiver may need time to read the files of its conversation.
 * P3. A receiver of an older release, which does not support lists, gets each message again
 *     separately.
 */
import { subjects } from '../../../protocol/subjects.ts'
import type { GatewayMessage, GatewayMessages } from '../../../protocol/workers/messages.ts'
import type { Bus } from '../ports.ts'

type Message = Readonly<Record<string, unknown>>
type Answered = Awaited<ReturnType<Bus['request']>>
interface Waiting {
  readonly message: Message
  readonly answer: (answered: Answered) => void
  readonly fail: (error: unknown) => void
}

/** Milliseconds after which a push without an answer from its receiver fails. */
const ANSWER_TIMEOUT_MS = 2000
/** Maximum number of messages that are sent together. */
const MAX_BATCH = 32

export class Pushes {
  readonly #bus: Pick<Bus, 'request'>
  readonly #waiting = new Map<string, Waiting[]>()

  constructor(bus: Pick<Bus, 'request'>) {
    this.#bus = bus
  }
  /** Sends a message, and returns the answer to it. */
  send(gateway: string, message: Message): Promise<Answered> {
    const { kind } = (message['job'] ?? {}) as { readonly kind?: string }
    if (kind === 'llm_generation') return this.#request(gateway, message)
    return new Promise((answer, fail) => {
      const waiting = this.#waiting.get(gateway)
      if (waiting) waiting.push({ message, answer, fail })
      else {
        this.#waiting.set(gateway, [{ message, answer, fail }])
        queueMicrotask(() => this.#flush(gateway))
      }
    })
  }
  #flush(gateway: string): void {
    const waiting = this.#waiting.get(gateway) ?? []
    this.#waiting.delete(gateway)
    for (let from = 0; from < waiting.length; from += MAX_BATCH) {
      const some = waiting.slice(from, from + MAX_BATCH)
      this.#sendAll(gateway, some).catch((error: unknown) => {
        for (const { fail } of some) fail(error)
      })
    }
  }
  async #sendAll(gateway: string, waiting: readonly Waiting[]): Promise<void> {
    const [first] = waiting
    if (first && waiting.length === 1)
      return first.answer(await this.#request(gateway, first.message))
    const list = { type: 'list', messages: waiting.map(({ message }) => message) }
    const answered = await this.#request(gateway, list)
    const answers = typeof answered === 'object' ? answersOf(answered.answer) : undefined
    for (const [i, { message, answer }] of waiting.entries())
      answer(
        typeof answered !== 'object'
          ? answered
          : answers
            ? { answer: answers[i] }
            : await this.#request(gateway, message),
      )
  }
  #request(gateway: string, message: unknown): Promise<Answered> {
    return this.#bus.request(subjects.gateway(gateway), message, ANSWER_TIMEOUT_MS)
  }
}

const answersOf = (answer: unknown): readonly unknown[] | undefined =>
  (answer as { readonly answers?: readonly unknown[] } | undefined)?.answers

/**
 * Handles a message that arrived at a mailbox. The messages of a list are handled in order, and
 * answered together. If the handler fails, the whole list gets no answer.
 */
export function answerEach(
  message: unknown,
  handler: (message: GatewayMessage) => unknown,
): unknown {
  const given = message as GatewayMessage | GatewayMessages
  if (given.type !== 'list') return handler(given)
  const answers = given.messages.map((one) => handler(one))
  return answers.some((answer) => answer instanceof Promise)
    ? Promise.all(answers).then((all) => ({ answers: all }))
    : { answers }
}
