/**
 * Bundles of requests. Small requests to one subject that a process makes in the same turn of the
 * event loop are sent in one message. Under load, a gateway sends about 40 requests per turn to the
 * owners of shards, and each message costs time in two processes and in the NATS server.
 *
 * Invariants:
 * U1. A bundle is answered with one message, because a subscriber is permitted only one answer to
 *     each message (`server/permissions.ts`).
 * U2. A slow request does not delay the answers to the others: the message is sent `COLLECT_MS`
 *     after the first answer at the latest. The requests without an answer are `pending`, and their
 *     callers send them again, not bundled.
 * U3. A bundle with one request is sent as an ordinary request.
 * U4. The size of a bundle is bounded, and that of its answers, except for a single answer.
 *
 * A bundle is a JSON array of requests, with the header `Baton-Bundle`. Its answer is a JSON array
 * of pairs of index and answer.
 */
import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { NoAnswer } from '../host/ports.ts'
import type { Content, RequestMux } from './request-mux.ts'

/** Header of a bundle. */
const BUNDLE = 'Baton-Bundle'
/** Maximum number of characters of a request in a bundle. */
export const MAX_BUNDLED_LENGTH = 16 * 1024
/** Maximum number of characters of a bundle, and of the answers to it. */
const MAX_LENGTH = 128 * 1024
/**
 * Milliseconds for which the answers to a bundle wait for further answers. The commands of a bundle
 * are usually committed by one or two appends, so all are answered much sooner. A repeated request
 * costs a busy owner more than a late answer.
 */
const COLLECT_MS = 250

/** The result of a request, as `Bus.request` returns it. */
type Result = { readonly answer: unknown } | NoAnswer
interface Bundle {
  readonly texts: string[]
  readonly waiting: ((result: Result) => void)[]
  length: number
}

/** Whether a message is a bundle. */
export const isBundle = ({ headers: given }: Pick<Msg, 'headers'>): boolean =>
  given?.has(BUNDLE) === true
const bundleHeaders = (): MsgHdrs => {
  const made = headers()
  made.set(BUNDLE, '1')
  return made
}

/**
 * Creates the function that sends a request in the bundle of its subject.
 * @param ask sends a bundle. The content is determined when it is sent.
 * @param read returns the content of an answer; undefined if the subscriber declines the bundle.
 * @param failed returns the result of requests that failed with this error.
 */
export function createBundles(
  ask: (subject: string, content: () => Content, timeout: number) => ReturnType<RequestMux['ask']>,
  read: (message: Msg) => { readonly answer: unknown } | undefined,
  failed: (subject: string, error: unknown) => NoAnswer,
): (subject: string, text: string, timeout: number) => Promise<Result> {
  const bundles = new Map<string, Bundle>()

  const send = async (subject: string, bundle: Bundle, timeout: number): Promise<void> => {
    const { texts, waiting } = bundle
    const close = () => {
      if (bundles.get(subject) === bundle) bundles.delete(subject)
    }
    const settle = (result: Result) => {
      for (const done of waiting) done(result)
    }
    try {
      const message = await ask(
        subject,
        () => {
          close()
          return texts.length === 1
            ? { data: Buffer.from(texts[0] as string) }
            : { data: Buffer.from(`[${texts.join(',')}]`), headers: bundleHeaders() }
        },
        timeout,
      )
      const content = read(message)
      if (!content) settle('no_responders')
      else if (texts.length === 1) settle(content)
      else {
        for (const [index, answer] of content.answer as [number, unknown][])
          waiting[index]?.({ answer })
        // The requests that were answered are settled already.
        settle('pending')
      }
    } catch (error) {
      close()
      settle(failed(subject, error))
    }
  }

  return (subject, text, timeout) =>
    new Promise((done) => {
      const open = bundles.get(subject)
      if (open && open.length + text.length <= MAX_LENGTH) {
        open.texts.push(text)
        open.waiting.push(done)
        open.length += text.length
        return
      }
      const bundle: Bundle = { texts: [text], waiting: [done], length: text.length }
      bundles.set(subject, bundle)
      void send(subject, bundle, timeout)
    })
}

/**
 * Creates the function that receives the result of each request of a bundle, by its index. An
 * undefined result means that the request has no answer.
 * @param count the number of requests.
 * @param send sends the answer to the bundle.
 */
export function collectAnswers(
  count: number,
  send: (answer: Uint8Array) => void,
): (index: number, result: unknown) => void {
  const texts: string[] = []
  let length = 0
  let open = count
  let sent = false
  let timer: NodeJS.Timeout | undefined
  const finish = () => {
    sent = true
    clearTimeout(timer)
    send(Buffer.from(`[${texts.join(',')}]`))
  }
  return (index, result) => {
    open--
    if (sent) return
    if (result !== undefined) {
      const text = `[${index},${JSON.stringify(result)}]`
      // An answer that does not fit is sent when its request is repeated.
      if (length === 0 || length + text.length <= MAX_LENGTH) {
        texts.push(text)
        length += text.length
      }
    }
    if (open === 0) finish()
    else timer ??= setTimeout(finish, COLLECT_MS)
  }
}
