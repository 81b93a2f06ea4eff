/**
 * The rows that list models: those that the service can call, and those that connected workers
 * offer.
 */
import { Type } from 'typebox'
import { Closed, cutting, listOf } from '../common.ts'
import { query } from '../contract.ts'
import { CatalogProvider } from './models.ts'

export const WorkerModel = Type.Object({
  provider: Type.String(),
  model: Type.String(),
  worker_count: Type.Integer({ minimum: 1 }),
  route: Type.Object({
    mode: Type.Enum(['worker']),
    provider: Type.String(),
    model: Type.String(),
  }),
})
const P = '/projects/:project/catalog'
const read = { tag: 'catalog', permission: 'project.view' } as const

export const models = {
  'catalog.models': query(`GET ${P}/models`, {
    ...read,
    summary: 'Models of the service by provider, and the default',
    answeredBy: 'gateway',
    query: Closed(cutting),
    reply: Type.Object({
      default_model: Type.String(),
      items: Type.Array(CatalogProvider),
      reason: Type.Optional(Type.Enum(['platform_funding_denied', 'credentials_unavailable'])),
    }),
  }),
  'catalog.worker_models': query(`GET ${P}/worker-models`, {
    ...read,
    summary: 'Models that the connected workers offer',
    query: Closed(cutting),
    reply: listOf(WorkerModel),
  }),
} as const
