import './format.js';
import './geometry.js';
import './tree.js';
import './texts.js';
import './figures.js';

export { all } from './kit.js';
