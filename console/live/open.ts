/**
 * Opens the live data of a page: through the SharedWorker of the origin, so that all tabs share one
 * connection, or through a hub in the page if no worker is available.
 */
import type { Live, LiveOptions } from './live.ts'
import type { LiveCredential, MessageFromHub } from './messages.ts'
import { type Attach, PageLive } from './page.ts'
import { browserPorts } from './ports.ts'
import { Registry } from './registry.ts'

/** Opens a port to a hub in this page. Messages arrive asynchronously, as from a worker. */
const inPage = (registry: Registry): Attach => {
  return (receive) => {
    let open = true
    const port = {
      send: (message: MessageFromHub) =>
        queueMicrotask(() => {
          if (open) receive(message)
        }),
    }
    return {
      send: (message) => registry.receive(port, message),
      close: () => {
        open = false
      },
    }
  }
}
/** Opens a port to the hub of a worker. */
const inWorker =
  (script: string | URL, failed: () => void): Attach =>
  (receive) => {
    const worker = new SharedWorker(script, { type: 'module', name: 'live' })
    worker.addEventListener('error', failed)
    worker.port.onmessage = ({ data }: MessageEvent<MessageFromHub>) => receive(data)
    return {
      send: (message) => worker.port.postMessage(message),
      close: () => {
        worker.removeEventListener('error', failed)
        worker.port.close()
      },
    }
  }

/** Opens the live data of this page. */
export function openLive({ url, headers = {}, identity = '', worker }: LiveOptions = {}): Live {
  const credential: LiveCredential = {
    url: (url ?? location.origin).replace(/\/$/, ''),
    headers,
    identity,
  }
  const local = inPage(new Registry(browserPorts))
  let attach = local
  if (worker !== undefined && typeof SharedWorker !== 'undefined')
    attach = inWorker(worker, () => {
      // The script of the worker could not be loaded or has failed, so the page uses its own hub.
      attach = local
      live.attach()
    })
  const live = new PageLive(
    (receive) => attach(receive),
    credential,
    browserPorts.later,
    (error) => reportError(error),
  )
  const online = () => live.wake()
  // A page in the back/forward cache must not keep subscriptions.
  const hide = () => live.detach()
  const show = ({ persisted }: PageTransitionEvent) => {
    if (persisted) live.attach()
  }
  addEventListener('online', online)
  addEventListener('pagehide', hide)
  addEventListener('pageshow', show)
  const { close } = live
  live.close = () => {
    removeEventListener('online', online)
    removeEventListener('pagehide', hide)
    removeEventListener('pageshow', show)
    close.call(live)
  }
  return live
}
