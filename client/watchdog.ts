/**
 * Ends a request that has gone silent, or whose caller stops it. `AbortSignal.any` and the signal that `fetch` makes of the
 * given one can be collected as garbage before they abort, and the request then waits for ever (nodejs/undici#3644;
 * measured on Node 20: 19 of 20 requests with garbage collection while they waited). So signals are linked by listeners of
 * their sources here, and a request and its body end with the signal that the caller holds.
 */

/** A signal that aborts when one of its sources does. */
export interface LinkedAbort {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
  /** Listen to the sources no longer. */
  release(): void
}

/** A controller that aborts with the reason of the first source that aborts. */
export function linkedAbort(...sources: readonly (AbortSignal | undefined)[]): LinkedAbort {
  const controller = new AbortController()
  const links = sources.flatMap((source) => {
    if (!source) return []
    const follow = () => controller.abort(source.reason)
    if (source.aborted) follow()
    else source.addEventListener('abort', follow, { once: true })
    return [() => source.removeEventListener('abort', follow)]
  })
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release: () => {
      for (const unlink of links) unlink()
    },
  }
}

/** The bound of one request. */
export interface Watchdog {
  /** For the request. */
  readonly signal: AbortSignal
  /** Something came: the time begins again. */
  alive(): void
  /** Whether the request was ended because nothing came. */
  silent(): boolean
  /** The request is over: end what is left of it. */
  stop(): void
}

/** Abort a request when nothing comes for `ms` milliseconds, or when `outer` aborts. */
export function watchdog(ms: number, outer?: AbortSignal): Watchdog {
  const link = linkedAbort(outer)
  let silent = false
  const expire = () => {
    silent = true
    link.abort()
  }
  let timer = setTimeout(expire, ms)
  return {
    signal: link.signal,
    alive: () => {
      clearTimeout(timer)
      if (!link.signal.aborted) timer = setTimeout(expire, ms)
    },
    silent: () => silent,
    stop: () => {
      clearTimeout(timer)
      link.release()
      link.abort()
    },
  }
}

/** What the promise resolves to. Rejects with the reason of the signal when that aborts first. */
export const orAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const end = () => reject(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })

/** The same `fetch`, whose signal ends the request and the body of its answer in every case. */
export const endedBySignal =
  (send: typeof fetch): typeof fetch =>
  async (input, init) => {
    const signal = init?.signal
    if (!signal) return send(input, init)
    const sent = send(input, init)
    const answer = await orAborted(sent, signal).catch((error: unknown) => {
      sent.then((late) => late.body?.cancel()).catch(() => {})
      throw error
    })
    if (!answer.body) return answer
    let unlink = () => {}
    // An error of the writing side cancels the source, which closes the connection.
    const bound = new TransformStream<Uint8Array, Uint8Array>({
      start: (controller) => {
        const end = () => controller.error(signal.reason)
        signal.addEventListener('abort', end, { once: true })
        unlink = () => signal.removeEventListener('abort', end)
        if (signal.aborted) end()
      },
      flush: () => unlink(),
    })
    return new Response(answer.body.pipeThrough(bound), answer)
  }
