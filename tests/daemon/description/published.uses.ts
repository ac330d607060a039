// What the types of the published client must still refuse, once they are made of our description.
import type { paths } from './types/api.js'

type Body = paths['/quote/v2']['post']['requestBody']['content']['application/json']
type Chains = paths['/chains']['get']['responses']['200']['content']['application/json']

// @ts-expect-error A quote needs more than nothing.
export const nothing: Body = {}
// @ts-expect-error There is no such trade.
export const trade: Body['tradeType'] = 'EXACT'
// @ts-expect-error Chains have numbers.
export const name: Chains['chains'][number]['id'] = 'base'
