/**
 * Remote procedure calls between a thread and the thread that started it, in both directions.
 * Values are copied as `postMessage` copies them.
 *
 * Invariant: every call settles once. Pending calls are rejected when the other thread has ended.
 */
import type { MessagePort, TransferListItem, Worker } from 'node:worker_threads'
import { TransientMap } from '../../protocol/rules/transient-map.ts'

type Message =
  | { readonly call: number; readonly name: string; readonly input: unknown }
  | { readonly answer: number; readonly value?: unknown; readonly error?: string }
interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** Thrown when the other thread has ended and answers no more calls. */
export class ThreadGone extends Error {
  override readonly name = 'Gone'
}
/** The functions that one thread provides to the other, by name. */
export type Served = Readonly<Record<string, (input: never) => unknown>>
export interface ThreadRpc {
  /**
   * Calls a function of the other thread. If the function throws, rejects with an error that
   * contains the text of the thrown error. If the other thread has ended, rejects with
   * `ThreadGone`.
   * @param transfer buffers of the input that are transferred instead of copied.
   */
  call(name: string, input?: unknown, transfer?: readonly TransferListItem[]): Promise<unknown>
  /** Records that the other thread has ended, and rejects all pending calls. */
  end(reason: string): void
}

/**
 * Starts serving the calls from the other thread, and returns the functions for calling it.
 * @param line the started thread or, inside a thread, its parent port.
 */
export function createThreadRpc(line: Worker | MessagePort, served: Served): ThreadRpc {
  const waiting = new TransientMap<number, Waiting>()
  let calls = 0
  let ended: string | undefined
  const answer = async ({
    call,
    name,
    input,
  }: Extract<Message, { call: number }>): Promise<void> => {
    let message: Message
    try {
      message = { answer: call, value: await served[name]?.(input as never) }
    } catch (error) {
      message = {
        answer: call,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }
    }
    line.postMessage(message)
  }
  line.on('message', (message: Message) => {
    if ('call' in message) return void answer(message)
    const waits = waiting.get(message.answer)
    waiting.delete(message.answer)
    if (message.error === undefined) waits?.resolve(message.value)
    else waits?.reject(new Error(message.error))
  })
  return {
    call: (name, input, transfer = []) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(new ThreadGone(ended))
        waiting.set(++calls, { resolve, reject })
        line.postMessage({ call: calls, name, input } satisfies Message, transfer)
      }),
    end: (reason) => {
      ended = reason
      for (const { reject } of waiting.values()) reject(new ThreadGone(reason))
      waiting.clear()
    },
  }
}
