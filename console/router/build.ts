/** Routes of the pages for workflows, loops, actions and events. */
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const buildRoutes: readonly Route[] = [
  {
    path: '/p/:project/workflows',
    load: () => import('../pages/workflows/list.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.workflows, icon: 'workflows', keys: 'g o' },
  },
  {
    path: '/p/:project/workflows/:id',
    load: () => import('../pages/workflows/workflow.tsx'),
    permission: 'project.view',
  },
  {
    path: '/p/:project/loops',
    load: () => import('../pages/loops/list.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.loops, icon: 'loops', keys: 'g l' },
  },
  {
    path: '/p/:project/loops/:id',
    load: () => import('../pages/loops/loop.tsx'),
    permission: 'project.view',
  },
  {
    path: '/p/:project/actions',
    load: () => import('../pages/actions/list.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.actions, icon: 'start', keys: 'g x' },
  },
  {
    path: '/p/:project/actions/:name',
    load: () => import('../pages/actions/action.tsx'),
    permission: 'project.view',
  },
  {
    path: '/p/:project/events',
    load: () => import('../pages/events/list.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.events, icon: 'events', keys: 'g v' },
  },
  {
    path: '/p/:project/events/:id',
    load: () => import('../pages/events/event.tsx'),
    permission: 'project.view',
  },
]
