/** Routes of the pages for sessions and agents. */
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
  {
    path: '/p/:project/agents',
    load: () => import('../pages/agents/agents.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.agents, icon: 'agents', keys: 'g a' },
  },
  {
    path: '/p/:project/agents/:id',
    load: () => import('../pages/agents/agent.tsx'),
    permission: 'project.view',
  },
  {
    path: '/p/:project/toolkits',
    load: () => import('../pages/agents/capabilities/toolkits.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.toolkits, icon: 'toolkits' },
  },
  {
    path: '/p/:project/skills',
    load: () => import('../pages/agents/capabilities/skills.tsx'),
    permission: 'project.view',
    entry: { group: text.groupBuild, label: text.skills, icon: 'star' },
  },
]
