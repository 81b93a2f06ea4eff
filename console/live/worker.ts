/**
 * The SharedWorker of the console: all tabs of the origin connect to it, and it owns their
 * connections to the service.
 */
import type { MessageToHub } from './messages.ts'
import { browserPorts } from './ports.ts'
import { Registry } from './registry.ts'

const registry = new Registry(browserPorts)

// The file is compiled with the DOM types, which lack this event of workers.
addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports
  if (!port) return
  const tab = { send: (message: unknown) => port.postMessage(message) }
  port.onmessage = ({ data }: MessageEvent<MessageToHub>) => registry.receive(tab, data)
})
