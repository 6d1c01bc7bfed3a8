import './format.js';
import './geometry.js';
import './tree.js';
import './texts.js';
import './figures.js';
import './replay.js';

export { all } from './kit.js';
