/** The pages of home, workers, webhooks, blueprints and nodes. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const operateRoutes: readonly Route[] = [
  {
    path: '/p/:project',
    load: () => import('../pages/home/home.tsx'),
    permission: 'project.view',
    entry: { group: text.groupWork, label: text.home, icon: 'home', keys: 'g h' },
  },
]
