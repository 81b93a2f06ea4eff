/** Routes of the pages for tables, artifacts and environments. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

const view = 'project.view'
const group = text.groupData
export const dataRoutes: readonly Route[] = [
  {
    path: '/p/:project/tables',
    load: () => import('../pages/tables/tables.tsx'),
    permission: view,
    entry: { group, label: text.tables, icon: 'tables', keys: 'g t' },
  },
  {
    path: '/p/:project/tables/:id',
    load: () => import('../pages/tables/table.tsx'),
    permission: view,
  },
  {
    path: '/p/:project/artifacts',
    load: () => import('../pages/artifacts/artifacts.tsx'),
    permission: view,
    entry: { group, label: text.artifacts, icon: 'artifacts', keys: 'g f' },
  },
  {
    path: '/p/:project/artifacts/:id',
    load: () => import('../pages/artifacts/artifact.tsx'),
    permission: view,
  },
  {
    path: '/p/:project/environments',
    load: () => import('../pages/environments/environments.tsx'),
    permission: view,
    entry: { group, label: text.environments, icon: 'environments', keys: 'g e' },
  },
  {
    path: '/p/:project/environments/:id',
    load: () => import('../pages/environments/environment.tsx'),
    permission: view,
  },
]
