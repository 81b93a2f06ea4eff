/**
 * The routes that need no API credential: pages, the status of the gateway, answer links, signed
 * requests of other systems, signed URLs, and signing in.
 */
import { unauthenticated } from '../../protocol/access/unauthenticated-rows.ts'
import { routeOf } from '../../protocol/contract.ts'
import { consoleRoutes } from '../auth/console/routes.ts'
import {
  DEVICE_PAGE,
  issueDeviceCode,
  issueDeviceToken,
  MAX_DEVICE_FORM_BYTES,
} from '../auth/device/flow.ts'
import { showDevice, submitDevice } from '../auth/device/page.ts'
import type { Edge } from '../call.ts'
import { receiveTrigger, signatureHeader, TRIGGER_LIMIT } from '../commands/http-trigger.ts'
import { INTEGRATION_HEADERS, receiveIntegration } from '../commands/integrations/receive.ts'
import { downloadRoute } from '../files/transfers.ts'
import { openStatus } from '../http/status.ts'
import { MAX_FORM_BYTES, showForm, submitForm } from '../pages/answer/answer.ts'
import { openChat } from '../pages/chat.ts'
import { type ConsoleFiles, openConsole } from '../pages/console.ts'
import { openDocs } from '../pages/docs.ts'
import { openSchemas } from '../pages/schemas.ts'
import type { Endpoint, Handler } from '../serve.ts'
import type { Router } from './router.ts'

/** What the pages of a gateway consist of. */
export interface PageSources {
  /** The modules of the chat page by address, with the entry module first. */
  readonly modules: ReadonlyMap<string, string>
  /** Loads the files of the console. */
  readonly loadConsole: (() => Promise<ConsoleFiles>) | undefined
  /** Returns whether the gateway is draining, which makes it report that it is not ready. */
  readonly isLeaving: () => boolean
}

/** Adds the routes that need no API credential. */
export function addPublicRoutes(router: Router, edge: Edge, sources: PageSources): void {
  for (const [path, handler] of Object.entries(pagesOf(edge, sources)))
    router.add(path, pageEndpoint(path, handler))
  addForm(router, '/answer/:token', {
    operation: '/answer',
    slots: 1,
    limit: MAX_FORM_BYTES,
    show: showForm(edge),
    take: submitForm(edge),
  })
  addSignedRequests(router, edge)
  router.add(...downloadRoute(edge))
  for (const [path, endpoint] of consoleRoutes(edge)) router.add(path, endpoint)
  addForm(router, DEVICE_PAGE, {
    operation: DEVICE_PAGE,
    slots: 0,
    limit: MAX_DEVICE_FORM_BYTES,
    show: showDevice(edge),
    take: submitDevice(edge),
  })
  addDeviceLogin(router, edge)
}

const pagesOf = (
  { world }: Edge,
  { modules, loadConsole, isLeaving }: PageSources,
): Readonly<Record<string, Handler>> => ({
  ...openStatus(world, isLeaving),
  ...openDocs(world.settings),
  ...openSchemas(),
  ...openChat(world.settings, modules),
  ...openConsole(world, loadConsole),
})
const pageEndpoint = (path: string, handler: Handler): Endpoint => ({
  operation: path.replace(/^\/(modules|schemas)\/.*/, '/$1'),
  purpose: 'query',
  method: 'GET',
  slots: path.includes(':') ? 1 : 0,
  limit: 0,
  further: ['if-none-match', 'accept-encoding'],
  handler,
})

/** Adds a page with a form: `show` answers GET, and `take` receives the form. */
function addForm(
  router: Router,
  path: string,
  {
    show,
    take,
    ...form
  }: Pick<Endpoint, 'operation' | 'slots' | 'limit'> & {
    readonly show: Handler
    readonly take: Handler
  },
): void {
  router.add(path, { ...form, purpose: 'query', method: 'GET', handler: show })
  router.add(path, { ...form, purpose: 'command', method: 'POST', handler: take })
}

/** Adds the endpoints whose requests are authenticated by a signature of their body. */
function addSignedRequests(router: Router, edge: Edge): void {
  const signed = { purpose: 'signed', method: 'POST' } as const
  router.add(`/v1${routeOf(unauthenticated['trigger.http']).path}`, {
    ...signed,
    operation: 'trigger.http',
    slots: 1,
    limit: TRIGGER_LIMIT,
    signature: signatureHeader(edge.world.settings.brand),
    handler: receiveTrigger(edge),
  })
  router.add(`/v1${routeOf(unauthenticated['integration.receive']).path}`, {
    ...signed,
    operation: 'integration.receive',
    slots: 2,
    limit: unauthenticated['integration.receive'].shape.limit,
    further: INTEGRATION_HEADERS,
    handler: receiveIntegration(edge),
  })
}

/** Adds the endpoints with which a device receives a personal token by a code. */
function addDeviceLogin(router: Router, edge: Edge): void {
  const login = {
    purpose: 'login',
    method: 'POST',
    slots: 0,
    limit: MAX_DEVICE_FORM_BYTES,
  } as const
  for (const [operation, handler] of [
    ['device.code', issueDeviceCode(edge)],
    ['device.token', issueDeviceToken(edge)],
  ] as const)
    router.add(`/v1${routeOf(unauthenticated[operation]).path}`, { ...login, operation, handler })
}
