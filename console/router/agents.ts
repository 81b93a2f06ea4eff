/** The pages of sessions and agents. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const agentRoutes: readonly Route[] = [
  {
    path: '/p/:project/sessions',
    load: () => import('../pages/sessions/sessions.tsx'),
    permission: 'project.view',
    entry: { group: text.groupWork, label: text.sessions, icon: 'sessions', keys: 'g s' },
  },
  {
    path: '/p/:project/sessions/:id',
    load: () => import('../pages/sessions/session.tsx'),
    permission: 'project.view',
  },
]
